# Third-party libraries, all from the distribution; static archives are preferred so that a wheel stands alone.
# docs/dependencies.md says why each was chosen.
find_package(Threads REQUIRED)

function(msprobe_static target archive)
  add_library(${target} INTERFACE)
  find_library(${target}_path NAMES lib${archive}.a ${archive})
  if(${target}_path)
    target_link_libraries(${target} INTERFACE ${${target}_path} ${ARGN})
  else()
    message(WARNING "${archive} was not found: rooms that need it will not link (run tools/setup.sh)")
  endif()
endfunction()

add_library(msprobe_common INTERFACE)
target_link_libraries(msprobe_common INTERFACE Threads::Threads)
target_compile_definitions(msprobe_common INTERFACE MSPROBE_VERSION="${PROJECT_VERSION}")
if(MSPROBE_SANITIZE)
  # Only what is shipped has to stand alone; compiling fmt in every file is a third of the time of a build without -O.
  find_library(msprobe_fmt_path NAMES fmt REQUIRED)
  target_link_libraries(msprobe_common INTERFACE ${msprobe_fmt_path})
else()
  target_compile_definitions(msprobe_common INTERFACE FMT_HEADER_ONLY=1)
endif()
msprobe_static(msprobe_deflate deflate)
# Its archive is not position independent enough for libmsprobe.so, which takes the shared library.
add_library(msprobe_yaml INTERFACE)
target_link_libraries(msprobe_yaml INTERFACE
  $<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>,-lyaml-cpp,-l:libyaml-cpp.a>)
msprobe_static(msprobe_inflate z)
msprobe_static(msprobe_expat expat)
# libxlsxwriter has no static archive in the distribution: src/report loads it when a sheet is asked for.
add_library(msprobe_xlsx INTERFACE)
target_link_libraries(msprobe_xlsx INTERFACE ${CMAKE_DL_LIBS})
msprobe_static(msprobe_sqlite sqlite3 ${CMAKE_DL_LIBS} m)
add_library(msprobe_http INTERFACE)
add_library(msprobe_cli11 INTERFACE)
