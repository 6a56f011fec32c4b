# SPDX-License-Identifier: Apache-2.0
# cpack reads this for each format. Debian's packages are made of all components; the VM's are also
# made for all other distributions, and so are the host's of portable programs
# (cpack -D VFMGR_PORTABLE=ON).
macro(installed_over folder)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS "${CPACK_VFMGR_DEPLOY}/${folder};${folder};ALL;/")
endmacro()

if(VFMGR_PORTABLE)
  set(CPACK_COMPONENTS_ALL service cli web cockpit)
  installed_over(portable)
elseif(NOT CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL guest)
endif()

if(CPACK_GENERATOR STREQUAL "DEB")
  installed_over(deb)
  if(VFMGR_PORTABLE)
    string(APPEND CPACK_PACKAGE_VERSION "+portable")
    string(APPEND CPACK_COMPONENT_SERVICE_DESCRIPTION "\n\
This build is for Ubuntu 22.04 and later. It has no metrics for Prometheus.")
    string(APPEND CPACK_COMPONENT_CLI_DESCRIPTION "\n\
This build is for Ubuntu 22.04 and later.")
  endif()
else()
  installed_over(rpm)
endif()

if(CPACK_GENERATOR STREQUAL "TGZ")
  if(VFMGR_PORTABLE)
    # vfmgr-0.2.0-x86_64/etc and usr, to be unpacked below /, as the units expect. cpack does this
    # only without components; without DESTDIR it would write /etc/vfmgr of the machine that builds.
    set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
    set(CPACK_SET_DESTDIR ON)
    set(CPACK_PACKAGE_FILE_NAME ${CPACK_ARCHIVE_FILE_NAME})
    set(of_all ${CPACK_INSTALL_CMAKE_PROJECTS})
    set(CPACK_INSTALL_CMAKE_PROJECTS)
    foreach(component IN LISTS CPACK_COMPONENTS_ALL)
      string(REPLACE ";ALL;" ";${component};" of_one "${of_all}")
      list(APPEND CPACK_INSTALL_CMAKE_PROJECTS ${of_one})
    endforeach()
  else()
    # vf-guest-0.2.0-x86_64/bin/vf-guest: the files can be unpacked anywhere.
    set(CPACK_PACKAGING_INSTALL_PREFIX "/${CPACK_ARCHIVE_GUEST_FILE_NAME}")
  endif()
endif()
