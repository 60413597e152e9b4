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
# fmt is compiled once (src/base/fmt.cc) where that file knows the release, else in every file that uses it.
set(MSPROBE_FMT_IN_HEADERS OFF)
find_path(msprobe_fmt_headers fmt/core.h REQUIRED)
file(STRINGS ${msprobe_fmt_headers}/fmt/core.h fmt_version REGEX "#define FMT_VERSION")
if(NOT fmt_version MATCHES "FMT_VERSION 9[0-9][0-9][0-9][0-9]")
  target_compile_definitions(msprobe_common INTERFACE FMT_HEADER_ONLY=1)
  set(MSPROBE_FMT_IN_HEADERS ON)
endif()
# All of xxHash is in its header: src/tensor/kernels compiles it for each instruction set.
find_path(msprobe_xxhash_headers xxhash.h REQUIRED)
msprobe_static(msprobe_deflate deflate)
# Its archive is not position independent enough for libmsprobe.so, which takes the shared library.
add_library(msprobe_yaml INTERFACE)
target_link_libraries(msprobe_yaml INTERFACE
  $<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>,-lyaml-cpp,-l:libyaml-cpp.a>)
msprobe_static(msprobe_inflate z)
msprobe_static(msprobe_expat expat)
# libxlsxwriter has no static archive in the distribution: where there is none (a wheel has one), src/sheet loads the library
# when a sheet is asked for.
add_library(msprobe_xlsx INTERFACE)
target_link_libraries(msprobe_xlsx INTERFACE ${CMAKE_DL_LIBS})
find_library(msprobe_xlsx_archive libxlsxwriter.a)
if(msprobe_xlsx_archive)
  target_link_libraries(msprobe_xlsx INTERFACE ${msprobe_xlsx_archive} msprobe_inflate)
endif()
msprobe_static(msprobe_sqlite sqlite3 ${CMAKE_DL_LIBS} m)
add_library(msprobe_http INTERFACE)
add_library(msprobe_cli11 INTERFACE)
