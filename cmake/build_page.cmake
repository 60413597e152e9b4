# Run in web/: installs what the lock file names when that was never done, then builds dist/index.html and dist/report.html.
if(NOT EXISTS node_modules)
  execute_process(COMMAND ${NPM} ci --no-audit --no-fund --loglevel=error RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "npm ci failed in web/: check the network, or configure with -DMSPROBE_WEB=OFF")
  endif()
endif()
execute_process(COMMAND ${NPM} run --silent build RESULT_VARIABLE failed OUTPUT_VARIABLE log ERROR_VARIABLE log)
if(failed)
  message(FATAL_ERROR "the pages did not build (npm run build in web/):\n${log}")
endif()
# The build tool leaves an unchanged file alone; the time says that it is as new as its sources.
file(TOUCH dist/index.html dist/report.html)
