# msprobe_room(ROOM [DEPS room...] [TESTS room...] [LIBS target...]), ROOM a folder below src that may nest, as graph/db; its
# tests may also use the rooms of TESTS:
#   src/ROOM/*.cc            -> static library msprobe_ROOM, '/' as '_'
#   src/ROOM/*_test.cc       -> part of executable TOP_test (GoogleTest), with MSPROBE_TESTS; TOP: the outermost folder
#   src/ROOM/*_bench.cc      -> part of executable TOP_bench (Google Benchmark), with MSPROBE_BENCH
# A room links only the rooms it names, so a forbidden include also fails to link.
enable_testing()
if(MSPROBE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(MSPROBE_BENCH)
  find_package(benchmark REQUIRED)
endif()

# msprobe_matching_tests(OUT FILES): those with a test whose name matches MSPROBE_TEST_FILTER; all without one.
function(msprobe_matching_tests out)
  set(matching ${ARGN})
  if(MSPROBE_TEST_FILTER)
    set(matching)
    foreach(file ${ARGN})
      file(READ ${file} text)
      if(text MATCHES "(TEST|TEST_F|TEST_P|INSTANTIATE_TEST_SUITE_P)\\([^)]*(${MSPROBE_TEST_FILTER})")
        list(APPEND matching ${file})
      endif()
    endforeach()
  endif()
  set(${out} ${matching} PARENT_SCOPE)
endfunction()

# msprobe_add_tests(TARGET COST): to CTest, each as one. A sanitized program starts slowly, so there each process runs half
# of a program's tests; what it says names the test that fails, or that was running when it crashed.
function(msprobe_add_tests target cost)
  if(NOT MSPROBE_SANITIZE)
    gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60)
    return()
  endif()
  string(REPLACE "|" "*:*" patterns "*${MSPROBE_TEST_FILTER}*")
  foreach(half 0 1)
    add_test(NAME ${target}_${half} COMMAND ${target} --gtest_filter=${patterns})
    set_tests_properties(${target}_${half} PROPERTIES COST ${cost}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${half}")
  endforeach()
endfunction()

# What guides the fuzzer is for what it tests, not for unit tests; without, they compile in four fifths of the time.
function(msprobe_without_coverage target kind)
  if(kind STREQUAL "test" AND MSPROBE_SANITIZE MATCHES "fuzzer-no-link")
    target_compile_options(${target} PRIVATE -fno-sanitize=fuzzer-no-link)
  endif()
endfunction()

# Reading the standard headers is a third of the time of a build, and most of one without optimisation.
set(common_headers <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <cstring> <deque> <filesystem>
  <fstream> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <string> <string_view> <thread> <unordered_map>
  <vector> <fmt/format.h>)
# msprobe_headers(KIND LIBS... HEADERS...): precompiles for msprobe_common_headers(TARGET KIND). ccache knows a precompiled
# header by the text beside it instead of its bytes, which no two compilations give alike: so checkouts share objects.
function(msprobe_headers kind)
  cmake_parse_arguments(HEADERS "EXECUTABLE" "" "LIBS;HEADERS" ${ARGN})
  set(target msprobe_headers_${kind})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/common_headers.cc CONTENT "")
  if(HEADERS_EXECUTABLE) # programs cannot share what libraries precompile
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/common_main.cc CONTENT "int main() {}\n")
    add_executable(${target} ${PROJECT_BINARY_DIR}/common_headers.cc ${PROJECT_BINARY_DIR}/common_main.cc)
  else()
    add_library(${target} STATIC ${PROJECT_BINARY_DIR}/common_headers.cc)
  endif()
  target_link_libraries(${target} PRIVATE msprobe_common ${HEADERS_LIBS})
  msprobe_without_coverage(${target} ${kind})
  target_precompile_headers(${target} PRIVATE ${common_headers} ${HEADERS_HEADERS})
  file(SHA256 ${msprobe_fmt_headers}/fmt/format.h fmt_text)
  foreach(suffix gch pch)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.${suffix}.sum
      CONTENT "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${MSPROBE_SANITIZE} ${fmt_text} ${common_headers} ${HEADERS_HEADERS}\n")
  endforeach()
endfunction()
msprobe_headers(lib)
# CLI11 is all templates and inline functions, and reading arguments is not what takes time when the command runs.
set(quick $<$<CONFIG:Release>:-O1>)
msprobe_headers(cli LIBS msprobe_cli11 HEADERS <CLI/CLI.hpp>)
target_compile_options(msprobe_headers_cli PRIVATE ${quick})
if(MSPROBE_TESTS)
  # What is tested is optimised as the product is; the tests themselves need not be, and compile in three fifths of the time.
  msprobe_headers(test EXECUTABLE LIBS GTest::gtest GTest::gtest_main HEADERS <gtest/gtest.h>)
  target_compile_options(msprobe_headers_test PRIVATE ${quick})
endif()
# msprobe_common_headers(TARGET lib|cli|test)
function(msprobe_common_headers target kind)
  msprobe_without_coverage(${target} ${kind})
  target_precompile_headers(${target} REUSE_FROM msprobe_headers_${kind})
  # GCC 12 takes the two halves of a std::string (16 bytes inside, or more elsewhere) for one when it inlines its moves. It says nothing of that
  # in a system's header, but a precompiled header hides that <string> is one. Without it, every one of these warnings is on.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict)
  endif()
endfunction()

# msprobe_embed(SOURCE NAME FILE): SOURCE is compiled with MSPROBE_<NAME>_FILE, a path whose text it embeds (base/embed.h).
function(msprobe_embed source name file)
  set(path ${PROJECT_SOURCE_DIR}/${file})
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS "MSPROBE_${name}_FILE=\"${path}\"" OBJECT_DEPENDS ${path})
endfunction()

function(msprobe_room room)
  cmake_parse_arguments(ROOM "" "" "DEPS;TESTS;LIBS" ${ARGN})
  set(dir ${PROJECT_SOURCE_DIR}/src/${room})
  string(REPLACE "/" "_" name ${room})
  string(REGEX REPLACE "/.*" "" top ${room})
  file(GLOB all CONFIGURE_DEPENDS ${dir}/*.cc ${dir}/*.h)
  file(GLOB tests CONFIGURE_DEPENDS ${dir}/*_test.cc)
  file(GLOB benches CONFIGURE_DEPENDS ${dir}/*_bench.cc)
  set(sources ${all})
  list(REMOVE_ITEM sources ${tests} ${benches} ${dir}/main.cc)
  set(has_cc ${sources})
  list(FILTER has_cc INCLUDE REGEX "\\.cc$")
  set(scope PUBLIC)
  if(has_cc)
    add_library(msprobe_${name} STATIC ${sources})
    if(room STREQUAL "cli")
      msprobe_common_headers(msprobe_${name} cli)
      target_compile_options(msprobe_cli PRIVATE ${quick})
    else()
      msprobe_common_headers(msprobe_${name} lib)
    endif()
    # Kernels choose their own instruction set and optimisation, which a precompiled header does not have.
    set(kernels ${sources})
    list(FILTER kernels INCLUDE REGEX "_(avx2|avx512|vpclmul|pclmul|neon|pmull)\\.cc$")
    set_source_files_properties(${kernels} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    # Where sources have the same names in unnamed namespaces, as the kernels of all instruction sets do, each is compiled alone.
    if(NOT room MATCHES "^(tensor/kernels|tensor/files|compare/round_off|diagnose/anatomy|serve|jobs)$")
      set_target_properties(msprobe_${name} PROPERTIES UNITY_BUILD ${MSPROBE_UNITY} UNITY_BUILD_BATCH_SIZE 6)
    endif()
  else()
    add_library(msprobe_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  # Includes read "base/status.h"; the public headers read <msprobe/...>.
  target_include_directories(msprobe_${name} ${scope} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  foreach(dep ${ROOM_DEPS})
    string(REPLACE "/" "_" dep ${dep})
    target_link_libraries(msprobe_${name} ${scope} msprobe_${dep})
  endforeach()
  target_link_libraries(msprobe_${name} ${scope} ${ROOM_LIBS} msprobe_common)
  # Rooms within one folder share a program of tests and one of benchmarks: linking is most of their cost.
  set_property(GLOBAL APPEND PROPERTY msprobe_tops ${top})
  set_property(GLOBAL APPEND PROPERTY msprobe_libs_${top} msprobe_${name})
  list(TRANSFORM ROOM_TESTS PREPEND msprobe_)
  string(REPLACE "/" "_" test_libs "${ROOM_TESTS}")
  set_property(GLOBAL APPEND PROPERTY msprobe_test_libs_${top} ${test_libs})
  set_property(GLOBAL APPEND PROPERTY msprobe_tests_${top} ${tests})
  set_property(GLOBAL APPEND PROPERTY msprobe_benches_${top} ${benches})
endfunction()

# msprobe_room_tests(): after the last room.
function(msprobe_room_tests)
  get_property(tops GLOBAL PROPERTY msprobe_tops)
  list(REMOVE_DUPLICATES tops)
  foreach(top ${tops})
    get_property(libs GLOBAL PROPERTY msprobe_libs_${top})
    list(REVERSE libs) # a room comes after those it uses
    get_property(test_libs GLOBAL PROPERTY msprobe_test_libs_${top})
    get_property(tests GLOBAL PROPERTY msprobe_tests_${top})
    get_property(benches GLOBAL PROPERTY msprobe_benches_${top})
    msprobe_matching_tests(wanted_tests ${tests})
    if(MSPROBE_TESTS AND wanted_tests)
      add_executable(${top}_test ${wanted_tests})
      msprobe_common_headers(${top}_test test)
      target_compile_options(${top}_test PRIVATE ${quick})
      target_link_libraries(${top}_test PRIVATE ${libs} ${test_libs} GTest::gtest GTest::gtest_main)
      # Only for those that ask: objects of the others are the same in every checkout.
      foreach(file ${wanted_tests})
        file(READ ${file} text)
        if(text MATCHES "MSPROBE_SOURCE_DIR")
          set_source_files_properties(${file} PROPERTIES COMPILE_DEFINITIONS "MSPROBE_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
        endif()
      endforeach()
      list(LENGTH wanted_tests cost)
      msprobe_add_tests(${top}_test ${cost})
    endif()
    if(MSPROBE_BENCH AND benches)
      add_executable(${top}_bench ${benches})
      target_link_libraries(${top}_bench PRIVATE ${libs} benchmark::benchmark benchmark::benchmark_main)
    endif()
  endforeach()
endfunction()
