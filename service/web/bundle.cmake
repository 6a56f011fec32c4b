# SPDX-License-Identifier: Apache-2.0
# cmake -P service/web/bundle.cmake: builds the console into build/web/bundle, and for Cockpit into
# build/web/cockpit, unless what is there was made from these sources. The console is the same for
# every Debian and every architecture, so a tree without Node.js may be given build/web of another
# machine.
cmake_minimum_required(VERSION 3.25)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
set(out ${root}/build/web)
set(node_major_min 18)

# Builds of several presets may come here at the same time.
file(MAKE_DIRECTORY ${out})
file(LOCK ${out} DIRECTORY GUARD PROCESS)

function(hash_of variable)
  foreach(source ${ARGN})
    file(SHA256 ${root}/${source} hash)
    string(APPEND all "${source} ${hash}\n")
  endforeach()
  string(SHA256 key "${all}")
  set(${variable} ${key} PARENT_SCOPE)
endfunction()

function(written_as file content variable)
  set(${variable} FALSE PARENT_SCOPE)
  if(EXISTS ${file})
    file(READ ${file} found)
    if(found STREQUAL content)
      set(${variable} TRUE PARENT_SCOPE)
    endif()
  endif()
endfunction()

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    string(JOIN " " command ${ARGN})
    message(FATAL_ERROR "the console did not build: in service/web, ${command}")
  endif()
endfunction()

file(GLOB_RECURSE sources RELATIVE ${root} ${CMAKE_CURRENT_LIST_DIR}/src/*)
set(packages service/web/package.json service/web/package-lock.json)
list(APPEND sources ${packages} service/web/.npmrc service/web/build.mjs service/web/tsconfig.json
     api/openapi.yaml)
list(SORT sources)
hash_of(key ${sources})
written_as(${out}/bundle.key ${key} is_built)
if(is_built AND EXISTS ${out}/bundle/index.html AND EXISTS ${out}/cockpit/index.html)
  return()
endif()

find_program(node node)
find_program(npm npm)
set(version 0)
if(node)
  execute_process(COMMAND ${node} --version OUTPUT_VARIABLE version)
  string(REGEX MATCH "[0-9]+" version "${version}")
endif()
if(NOT npm OR version LESS node_major_min)
  message(FATAL_ERROR "building the console needs Node.js ${node_major_min} or later, and npm: "
          "apt-get install $(sed 's/#.*//' deploy/console-build.txt)")
endif()
hash_of(installed ${packages})
written_as(${CMAKE_CURRENT_LIST_DIR}/node_modules/installed.key ${installed} is_installed)
if(NOT is_installed)
  run(${npm} ci --ignore-scripts --no-audit --no-fund)
  file(WRITE ${CMAKE_CURRENT_LIST_DIR}/node_modules/installed.key ${installed})
endif()
run(${npm} run --silent build)
file(WRITE ${out}/bundle.key ${key})
