# Links web/dist/index.html into the serve room, building it first when a source is newer and npm is there.
if(NOT MSPROBE_WEB)
  target_compile_definitions(msprobe_serve PRIVATE MSPROBE_EMBED_PAGE=0)
  return()
endif()

set(web ${PROJECT_SOURCE_DIR}/web)
set(page ${web}/dist/index.html)
find_program(NPM npm)
if(NPM AND EXISTS ${web}/package.json)
  file(GLOB_RECURSE page_sources CONFIGURE_DEPENDS ${web}/src/*)
  file(GLOB page_settings CONFIGURE_DEPENDS ${web}/index.html ${web}/package.json ${web}/package-lock.json ${web}/*.ts)
  list(FILTER page_sources EXCLUDE REGEX "\\.test\\.tsx?$")
  add_custom_command(
    OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -DNPM=${NPM} -P ${PROJECT_SOURCE_DIR}/cmake/build_page.cmake
    DEPENDS ${page_sources} ${page_settings}
    WORKING_DIRECTORY ${web}
    COMMENT "Building the page"
    VERBATIM)
elseif(NOT EXISTS ${page})
  message(FATAL_ERROR
    "The page is not built and npm is not there to build it: install Node.js 20 or newer (or run tools/setup.sh), "
    "or configure with -DMSPROBE_WEB=OFF for a command without the page.")
endif()

target_compile_definitions(msprobe_serve PRIVATE MSPROBE_EMBED_PAGE=1)
set_source_files_properties(src/serve/page.cc PROPERTIES
  COMPILE_DEFINITIONS "MSPROBE_PAGE_FILE=\"${page}\""
  OBJECT_DEPENDS ${page})
