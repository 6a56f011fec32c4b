// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/declared_vfs.hpp"

#include <fmt/format.h>

#include "api/types/attachment.hpp"
#include "api/types/network.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::string_view declared_uri = "urn:vfmgr:attachments";

// True if the element is NAME of our namespace, under whatever prefix. `outer` declared the prefix,
// or the element itself does.
bool is_ours(pugi::xml_node const& element, std::string_view name, pugi::xml_node const& outer) {
    std::string_view const full = element.name();
    auto const colon = full.find(':');
    auto const local = colon == std::string_view::npos ? full : full.substr(colon + 1);
    auto const declares = colon == std::string_view::npos
                              ? std::string("xmlns")
                              : fmt::format("xmlns:{}", full.substr(0, colon));
    auto uri = element.attribute(declares.c_str());
    if (!uri) uri = outer.attribute(declares.c_str());
    return local == name && std::string_view(uri.value()) == declared_uri;
}

// Returns what is wrong with it, if anything. The text is a tenant's, so it is quoted.
std::optional<std::string> read_declared(pugi::xml_node const& element, DeclaredVfs& vfs) {
    for (auto const& attribute : element.attributes()) {
        std::string_view const name = attribute.name();
        std::string_view const value = attribute.value();
        if (name == "pool") {
            vfs.pool = value;
        } else if (name == "count") {
            auto const count = parse_digits(value, {.max = attachment_set_max});
            if (!count || *count == 0)
                return fmt::format("count {} is not from 1 to {}", quoted(value),
                                   attachment_set_max);
            vfs.count = static_cast<std::uint32_t>(*count);
        } else if (name == "profile") {
            vfs.verify_profile = enum_value<Profile>(value);
            if (!vfs.verify_profile)
                return fmt::format("profile {} is none of {}", quoted(value),
                                   enum_choices<Profile>());
        } else if (!name.starts_with("xmlns")) {
            return fmt::format("{} can't be declared: only pool, count and profile can",
                               quoted(name));
        }
    }
    if (!can_be_a_networks(vfs.pool)) return fmt::format("{} names no pool", quoted(vfs.pool));
    return std::nullopt;
}

}  // namespace

DeclaredXml declared_in(pugi::xml_node const& domain) {
    DeclaredXml declared;
    std::size_t count = 0;
    for (auto const& outer : domain.child("metadata").children()) {
        if (!is_ours(outer, "attachments", outer)) continue;
        for (auto const& element : outer.children()) {
            if (!is_ours(element, "attachment", outer)) continue;
            DeclaredVfs vfs;
            if (auto wrong = read_declared(element, vfs)) return {{}, std::move(wrong)};
            count += vfs.count;
            declared.vfs.push_back(std::move(vfs));
        }
    }
    if (count > attachment_set_max)
        return {{},
                fmt::format("{} VFs are declared; a VM can have {}", count, attachment_set_max)};
    return declared;
}

}  // namespace vfmgr
