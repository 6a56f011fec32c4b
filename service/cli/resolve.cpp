// SPDX-License-Identifier: Apache-2.0
#include "service/cli/resolve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "service/cli/table.hpp"

namespace vfmgr {

Result<PciAddress> pf_among(std::vector<PfView> const& pfs, std::string const& text) {
    std::vector<std::string> matches;
    std::vector<std::string> known;
    for (auto const& [pf, vfs, standing, spec, revision, networks] : pfs) {
        known.push_back(cell(pf.info.ifname));
        if (known.back() == text) matches.push_back(cell(pf.info.pci));
    }
    if (matches.size() > 1)
        return fail(
            Problem::conflict,
            fmt::format("'{}' names {} PFs: {}", text, matches.size(), fmt::join(matches, ", ")),
            "name the PF by its PCI address");
    if (matches.empty())
        return fail(Problem::not_found, fmt::format("this host has no PF '{}'", text),
                    known.empty() ? "this host has no SR-IOV capable network device"
                                  : fmt::format("use one of: {}", fmt::join(known, ", ")));
    return PciAddress::parse(matches.front());
}

Result<std::string> attachment_among(std::vector<Attachment> const& attachments,
                                     std::string const& text) {
    std::vector<std::string> matches;
    for (auto const& attachment : attachments) {
        if (attachment.id == text) return text;
        if (attachment.vm == text || attachment.vm_uuid == text) matches.push_back(attachment.id);
    }
    if (matches.size() == 1) return matches.front();
    if (matches.empty())
        return fail(Problem::not_found,
                    fmt::format("'{}' is neither an attachment nor a VM that has one", text),
                    "vfctl attachment list shows those of this host");
    return fail(Problem::conflict,
                fmt::format("VM '{}' has {} attachments: {}", text, matches.size(),
                            fmt::join(matches, ", ")),
                "name one by its id");
}

Result<PciAddress> resolve_pf(Connection const& connection, std::string const& text) {
    if (auto const pci = PciAddress::parse(text)) return *pci;
    VFMGR_TRY(auto const list, get<ItemList<PfView>>(connection, "/v1/pfs"));
    return pf_among(list.items, text);
}

Result<std::string> resolve_attachment(Connection const& connection, std::string const& text) {
    VFMGR_TRY(auto const list, get<ItemList<Attachment>>(connection, "/v1/attachments"));
    return attachment_among(list.items, text);
}

}  // namespace vfmgr
