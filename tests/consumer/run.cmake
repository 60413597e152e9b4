# Installs the library into a directory of the build, builds the program beside this file against it, and runs it.
set(work ${BUILD}/consumer)
file(REMOVE_RECURSE ${work})
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE log ERROR_VARIABLE log)
  if(failed)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${failed}\n${log}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/installed --component library)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${work}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_PREFIX_PATH=${work}/installed)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer ${SOURCE}/tests/golden/graph/values/target ${SOURCE}/tests/golden/graph/values/golden ${work}/out)
