# SPDX-License-Identifier: Apache-2.0
# ctest registers everything that can be run. Each entry runs tests/case, which counts its cases,
# and is labelled with its part:
#   ctest --preset unit -R Judge           one by one, in the build of the preset dev
#   ctest --test-dir build/asan -L unit    what tests/run calls
# Heavy entries boot machines or build packages, and run only with `ctest -C Heavy`.
set(VFMGR_TEST_CASES program CACHE STRING
    "program: one entry of ctest per GoogleTest program; each: one entry per test case")
# The first python3 in PATH may lack Debian's modules.
set(VFMGR_PYTHON /usr/bin/python3)

set(VFMGR_TEST_ENVIRONMENT
    ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
    UBSAN_OPTIONS=print_stacktrace=1
    TSAN_OPTIONS=halt_on_error=1:suppressions=${CMAKE_CURRENT_LIST_DIR}/tsan-suppressions.txt
    # TSan does not see how GLib's own allocator reuses memory.
    G_SLICE=always-malloc
    VFMGR_BUILD_DIR=${PROJECT_BINARY_DIR})

# vfmgr_test(PART NAME KIND SECONDS_MAX COMMAND…): see tests/case for KIND.
function(vfmgr_test part name kind seconds_max)
  add_test(NAME ${part}.${name}
           COMMAND ${VFMGR_PYTHON} ${PROJECT_SOURCE_DIR}/tests/case ${kind} ${part} ${name} ${ARGN})
  set_tests_properties(${part}.${name} PROPERTIES
    LABELS ${part} TIMEOUT ${seconds_max} ENVIRONMENT "${VFMGR_TEST_ENVIRONMENT}")
endfunction()

function(vfmgr_heavy_test part name kind seconds_max)
  add_test(NAME ${part}.${name} CONFIGURATIONS Heavy
           COMMAND ${VFMGR_PYTHON} ${PROJECT_SOURCE_DIR}/tests/case ${kind} ${part} ${name} ${ARGN})
  set_tests_properties(${part}.${name} PROPERTIES LABELS ${part} TIMEOUT ${seconds_max})
endfunction()

# vfmgr_globbed(VARIABLE PATTERN…): the files. Finding none is an error, so no suite gets lost.
function(vfmgr_globbed variable)
  file(GLOB found CONFIGURE_DEPENDS ${ARGN})
  if(NOT found)
    message(FATAL_ERROR "no file matches ${ARGN}: a test suite would be lost")
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# Compiles the tests' own code in two thirds of the time: fuzzing is guided by what the product's
# code does, and GoogleTest says the line of a failure. A build for the debugger keeps its lines.
function(vfmgr_of_tests)
  set(clang "$<AND:$<CXX_COMPILER_ID:Clang>,$<CONFIG:>>")
  set(less -fno-sanitize-coverage=inline-8bit-counters,pc-table -g0)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE "$<${clang}:${less}>")
  endforeach()
endfunction()

# vfmgr_unit_test(PROGRAM FOLDERS LIBRARY…): builds the *_test.cpp of these folders of tests/unit as
# one program.
function(vfmgr_unit_test name folders)
  foreach(folder ${folders})
    vfmgr_globbed(sources_of_folder unit/${folder}/*_test.cpp)
    list(APPEND sources ${sources_of_folder})
  endforeach()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARGN} vfmgr_repository GTest::gtest_main GTest::gmock)
  vfmgr_of_tests(${name})
  if(VFMGR_TEST_CASES STREQUAL each)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_PREFIX unit.${name}.
                         PROPERTIES LABELS unit)
  else()
    vfmgr_test(unit ${name} gtest 900 $<TARGET_FILE:${name}>)
  endif()
endfunction()

# vfmgr_pytests(PART FOLDER): registers each tests/FOLDER/test_*.py.
function(vfmgr_pytests part folder)
  vfmgr_globbed(files ${folder}/test_*.py)
  foreach(path ${files})
    get_filename_component(name ${path} NAME_WE)
    vfmgr_test(${part} ${name} pytest 900 ${path})
  endforeach()
endfunction()
