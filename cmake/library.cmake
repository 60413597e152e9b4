# libmsprobe for C++ programs: the public headers of include/msprobe in front of the rooms, in one shared library that
# shows nothing else and needs no other library but yaml-cpp. find_package(msprobe), then link msprobe::msprobe.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(msprobe_library SHARED $<TARGET_OBJECTS:msprobe_api>)
set_target_properties(msprobe_library PROPERTIES
  OUTPUT_NAME msprobe EXPORT_NAME msprobe VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_link_libraries(msprobe_library PRIVATE msprobe_jobs msprobe_graph_build)
target_link_options(msprobe_library PRIVATE -Wl,--exclude-libs,ALL)
target_include_directories(msprobe_library INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(msprobe_library INTERFACE cxx_std_20)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/msprobe)
write_basic_package_version_file(msprobeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS msprobe_library EXPORT msprobeConfig COMPONENT library)
install(EXPORT msprobeConfig NAMESPACE msprobe:: DESTINATION ${package_dir} COMPONENT library)
install(FILES ${PROJECT_BINARY_DIR}/msprobeConfigVersion.cmake DESTINATION ${package_dir} COMPONENT library)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/msprobe DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)

# A program outside of this project is built against the installed library and run. A sanitized library would need a
# sanitized program.
if(MSPROBE_TESTS AND NOT MSPROBE_SANITIZE)
  add_test(NAME public_headers
    COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}
            -DCXX=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR} -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
endif()
