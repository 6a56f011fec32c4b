# SPDX-License-Identifier: Apache-2.0
# cpack reads this for each format. The host's packages are only for Debian, the VM's for all.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL guest)
endif()
if(CPACK_GENERATOR STREQUAL "TGZ")
  # vf-guest-0.2.0-x86_64/bin/vf-guest: the files can be unpacked anywhere.
  set(CPACK_PACKAGING_INSTALL_PREFIX "/${CPACK_ARCHIVE_GUEST_FILE_NAME}")
endif()
