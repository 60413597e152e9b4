# Links the built pages into the command: web/dist/index.html into the serve room, web/dist/report.html into the report
# room. Both are built first when a source is newer and npm is there.
if(NOT MSPROBE_WEB)
  return()
endif()

set(web ${PROJECT_SOURCE_DIR}/web)
set(page ${web}/dist/index.html)
set(report ${web}/dist/report.html)
find_program(NPM npm)
if(NPM AND EXISTS ${web}/package.json)
  file(GLOB_RECURSE page_sources CONFIGURE_DEPENDS ${web}/src/* ${web}/report/*)
  file(GLOB page_settings CONFIGURE_DEPENDS ${web}/index.html ${web}/package.json ${web}/package-lock.json ${web}/*.ts)
  list(FILTER page_sources EXCLUDE REGEX "\\.test\\.tsx?$")
  add_custom_command(
    OUTPUT ${page} ${report}
    COMMAND ${CMAKE_COMMAND} -DNPM=${NPM} -P ${PROJECT_SOURCE_DIR}/cmake/build_page.cmake
    DEPENDS ${page_sources} ${page_settings}
    WORKING_DIRECTORY ${web}
    COMMENT "Building the pages"
    VERBATIM)
  # Two rooms need them: without a target of its own, each would build them, perhaps at the same time.
  add_custom_target(msprobe_pages DEPENDS ${page} ${report})
  add_dependencies(msprobe_serve msprobe_pages)
  add_dependencies(msprobe_report msprobe_pages)
elseif(NOT EXISTS ${page} OR NOT EXISTS ${report})
  message(FATAL_ERROR
    "The pages are not built and npm is not there to build them: install Node.js 20 or newer (or run tools/setup.sh), "
    "or configure with -DMSPROBE_WEB=OFF for a command without them.")
endif()

# Per file: no other object depends on whether there is a page.
msprobe_embed(src/serve/page.cc PAGE web/dist/index.html)
msprobe_embed(src/report/report_page.cc REPORT web/dist/report.html)
