// SPDX-License-Identifier: Apache-2.0
// Reads the VFs that a domain's XML declares in its metadata (LIBVIRT.md#declared-vfs). Pure; any
// thread.
#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "api/types/vm_info.hpp"

namespace vfmgr {

struct DeclaredXml {
    std::vector<DeclaredVfs> vfs;      // empty: it declares none
    std::optional<std::string> wrong;  // why what it declares can't be taken as it is; then no vfs
};

[[nodiscard]] DeclaredXml declared_in(pugi::xml_node const& domain);

}  // namespace vfmgr
