// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/marked_xml.hpp"

#include <fmt/format.h>

#include <pugixml.hpp>

#include "vfmgr/hypervisor/xml_values.hpp"

namespace vfmgr {
namespace {

void set_attribute(pugi::xml_node node, char const* name, char const* value) {
    auto attribute = node.attribute(name);
    if (!attribute) attribute = node.append_attribute(name);
    attribute = value;
}

void set_alias(pugi::xml_node hostdev, std::optional<std::string> const& alias) {
    hostdev.remove_child("alias");
    if (alias) set_attribute(hostdev.append_child("alias"), "name", alias->c_str());
}

}  // namespace

Result<std::string> marked_xml(std::string_view xml, MarkHostdev const& step) {
    return changed_xml(xml, step.vm, [&step](pugi::xml_node domain) -> Result<void> {
        for (auto hostdev : domain.child("devices").children("hostdev")) {
            if (pci_address(hostdev.child("source").child("address")) != step.pci) continue;
            set_attribute(hostdev, "managed", step.managed ? "yes" : "no");
            set_alias(hostdev, step.alias);
            return {};
        }
        return fail(Problem::conflict,
                    fmt::format("the persistent XML of VM {} has no <hostdev> at {} any more",
                                step.vm, to_string(step.pci)),
                    fmt::format("check it: virsh dumpxml --inactive {}", step.vm));
    });
}

}  // namespace vfmgr
