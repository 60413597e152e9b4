# Toolchain of wheels: zig as C and C++ compiler for MSPROBE_ARCH and the C library of manylinux_2_28, by the wrappers in
# MSPROBE_WRAPPERS (tools/wheels/compiler.py). Libraries and headers come from MSPROBE_ARCHIVES alone, never from the host.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MSPROBE_ARCH MSPROBE_WRAPPERS MSPROBE_ARCHIVES)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${MSPROBE_ARCH})
set(CMAKE_C_COMPILER ${MSPROBE_WRAPPERS}/${MSPROBE_ARCH}-cc)
set(CMAKE_CXX_COMPILER ${MSPROBE_WRAPPERS}/${MSPROBE_ARCH}-c++)
set(CMAKE_AR ${MSPROBE_WRAPPERS}/ar)
set(CMAKE_RANLIB ${MSPROBE_WRAPPERS}/ranlib)
set(CMAKE_FIND_ROOT_PATH ${MSPROBE_ARCHIVES})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# What is packed is not installed by CMake: it must not look for libraries where it was linked.
set(CMAKE_SKIP_RPATH ON)
# This compiler does not write precompiled headers.
set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
include_directories(SYSTEM ${MSPROBE_ARCHIVES}/include)
link_directories(${MSPROBE_ARCHIVES}/lib)
