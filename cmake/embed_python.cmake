# Puts the program that runs the user's metrics into the compare room: the command alone is enough to start it.
set(program ${PROJECT_SOURCE_DIR}/python/msprobe/_custom_metrics.py)
set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
file(READ ${program} text)
file(CONFIGURE OUTPUT ${generated}/compare/custom_metrics_program.h @ONLY CONTENT "// Made from python/msprobe/_custom_metrics.py.
#pragma once
inline constexpr char kCustomMetricsProgram[] = R\"msprobe(@text@)msprobe\";
")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${program})
target_include_directories(msprobe_compare PRIVATE ${generated})
