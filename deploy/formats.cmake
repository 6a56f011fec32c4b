# SPDX-License-Identifier: Apache-2.0
# Read by cpack for each format: the host's packages are Debian's, the VM's are everybody's.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL guest)
endif()
if(CPACK_GENERATOR STREQUAL "TGZ")
  # vf-guest-0.1.0-x86_64/bin/vf-guest: what is in it may go anywhere.
  set(CPACK_PACKAGING_INSTALL_PREFIX "/${CPACK_ARCHIVE_GUEST_FILE_NAME}")
endif()
