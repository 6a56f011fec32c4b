// SPDX-License-Identifier: Apache-2.0
#include "service/cli/resolve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/types/text.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {
namespace {

constexpr auto vf_remedy = "name it by its PF and its number, such as 0000:01:00.0/3 or enp1s0/3";

using Names = std::vector<std::string>;

// "'twin' names 2 PFs: 0000:02:00.0, 0000:02:00.1"
tl::unexpected<Error> several(std::string const& text, std::string_view what, Names const& matches,
                              std::string remedy) {
    return fail(Problem::conflict,
                fmt::format("{} names {} {}: {}", quoted(text), matches.size(), what,
                            fmt::join(matches, ", ")),
                std::move(remedy));
}

bool same_ignoring_case(std::string_view one, std::string_view other) {
    auto const lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    return std::ranges::equal(one, other, {}, lower, lower);
}

// A name that holds control characters is printed without them.
bool names_vm(std::string const& text, std::string const& name, std::string const& uuid) {
    return text == name || text == printable(name) || same_ignoring_case(text, uuid);
}

// A VF by the words that name its PF and its number; nothing if `name` has no number.
struct PfAndIndex {
    std::string pf;
    std::uint16_t index = 0;
};
Result<std::optional<PfAndIndex>> split(VfName const& name) {
    auto const slash = name.text.rfind('/');
    if (slash == std::string::npos) {
        if (name.index) return PfAndIndex{name.text, *name.index};
        return std::nullopt;
    }
    if (name.index)
        return fail(Problem::invalid_request,
                    fmt::format("{} and {} both number the VF", quoted(name.text), *name.index),
                    vf_remedy);
    auto const index = parse_digits(name.text.substr(slash + 1), {.max = UINT16_MAX});
    if (!index || slash == 0)
        return fail(Problem::invalid_request,
                    fmt::format("{} is not a PF and a number", quoted(name.text)), vf_remedy);
    return PfAndIndex{name.text.substr(0, slash), static_cast<std::uint16_t>(*index)};
}

// The VF whose own PCI address or netdev this is.
Result<VfId> vf_by_itself(std::vector<PfView> const& pfs, std::string const& text) {
    auto const pci = PciAddress::parse(text);
    std::vector<VfId> found;
    for (auto const& view : pfs)
        for (auto const& each : view.vfs)
            if (pci ? each.vf.pci == *pci : each.vf.ifname == text)
                found.push_back({view.pf.info.pci, each.vf.index});
    if (found.size() == 1) return found.front();
    Names matches;
    for (auto const& vf : found) matches.push_back(to_string(vf));
    if (!found.empty()) return several(text, "VFs", matches, "name the VF by one of these");
    if (pf_among(pfs, text))
        return fail(Problem::invalid_request,
                    fmt::format("{} names a PF, and not one of its VFs", quoted(text)),
                    fmt::format("name a VF, such as {}/0", text));
    return fail(Problem::not_found, fmt::format("this host has no VF {}", quoted(text)), vf_remedy);
}

}  // namespace

Result<PciAddress> pf_among(std::vector<PfView> const& pfs, std::string const& text) {
    auto const pci = PciAddress::parse(text);
    Names matches;
    Names known;
    for (auto const& view : pfs) {
        auto const& info = view.pf.info;
        if (pci && info.pci == *pci) return *pci;
        known.push_back(info.ifname.empty() ? to_string(info.pci) : cell(info.ifname));
        if (!text.empty() && info.ifname == text) matches.push_back(to_string(info.pci));
    }
    if (matches.size() == 1) return PciAddress::parse(matches.front());
    if (!matches.empty()) return several(text, "PFs", matches, "name the PF by its PCI address");
    return fail(Problem::not_found, fmt::format("this host has no PF {}", quoted(text)),
                known.empty() ? "this host has no SR-IOV capable network device"
                              : fmt::format("use one of: {}", fmt::join(known, ", ")));
}

Result<VfId> vf_among(std::vector<PfView> const& pfs, VfName const& name) {
    VFMGR_TRY(auto const words, split(name));
    if (!words) return vf_by_itself(pfs, name.text);
    if (auto const pci = PciAddress::parse(words->pf)) return VfId{*pci, words->index};
    VFMGR_TRY(auto const pf, pf_among(pfs, words->pf));
    return VfId{pf, words->index};
}

Result<VmInfo> vm_among(std::vector<VmInfo> const& vms, std::string const& text) {
    std::vector<VmInfo> found;
    for (auto const& vm : vms)
        if (names_vm(text, vm.name, vm.uuid)) found.push_back(vm);
    if (found.size() == 1) return found.front();
    if (found.empty())
        return fail(Problem::not_found, fmt::format("libvirt knows no VM {}", quoted(text)),
                    "vfctl vm list shows those of this host");
    Names matches;
    for (auto const& vm : found) matches.push_back(fmt::format("{} ({})", cell(vm.name), vm.uuid));
    return several(text, "VMs", matches, "name the VM by what only it has");
}

Result<std::string> attachment_among(std::vector<Attachment> const& attachments,
                                     std::string const& text) {
    std::vector<Attachment> found;
    for (auto const& each : attachments)
        if (each.id == text || names_vm(text, each.vm, each.vm_uuid)) found.push_back(each);
    if (found.size() == 1) return found.front().id;
    if (found.empty())
        return fail(Problem::not_found,
                    fmt::format("{} is neither an attachment nor a VM that has one", quoted(text)),
                    "vfctl attachment list shows those of this host");
    Names matches;
    for (auto const& each : found)
        matches.push_back(fmt::format("{} (VF {})", each.id, to_string(each.vf)));
    return several(
        text, "attachments", matches,
        found.front().id == text ? "name one by its VF" : "name one by its id or its VF");
}

Result<std::string> attachment_of(std::vector<Attachment> const& attachments, VfId const& vf) {
    auto const found = std::ranges::find(attachments, vf, &Attachment::vf);
    if (found != attachments.end()) return found->id;
    return fail(Problem::not_found, fmt::format("VF {} is attached to no VM", to_string(vf)),
                "vfctl attachment list shows what is attached");
}

Result<PciAddress> resolve_pf(Connection const& connection, std::string const& text) {
    if (auto const pci = PciAddress::parse(text)) return *pci;
    VFMGR_TRY(auto const all, get_list<PfView>(connection, "/v1/pfs"));
    return pf_among(all, text);
}

Result<VfId> resolve_vf(Connection const& connection, VfName const& name) {
    VFMGR_TRY(auto const words, split(name));
    if (words && PciAddress::parse(words->pf)) return vf_among({}, name);
    VFMGR_TRY(auto const all, get_list<PfView>(connection, "/v1/pfs"));
    return vf_among(all, name);
}

Result<VmInfo> resolve_vm(Connection const& connection, std::string const& text) {
    VFMGR_TRY(auto const all, get_list<VmInfo>(connection, "/v1/vms"));
    return vm_among(all, text);
}

// libvirt allows no '/' in the name of a VM.
Result<std::string> resolve_attachment(Connection const& connection, std::string const& text) {
    std::optional<VfId> vf;
    if (text.find('/') != std::string::npos) {
        VFMGR_TRY(vf, resolve_vf(connection, {text}));
    }
    VFMGR_TRY(auto const all, get_list<Attachment>(connection, "/v1/attachments"));
    return vf ? attachment_of(all, *vf) : attachment_among(all, text);
}

Result<std::vector<Attachment>> attachments_of_vm(Connection const& connection,
                                                  std::string const& vm) {
    VFMGR_TRY(auto const response,
              connection.list({.path = "/v1/attachments", .query = {{"vm", vm}}}));
    VFMGR_TRY(auto list, value_of<ItemList<Attachment>>(response));
    return std::move(list.items);
}

ApiRequest detach_request(std::vector<Attachment> const& attachments) {
    std::string ids;
    for (auto const& one : attachments) ids += (ids.empty() ? "" : ",") + one.id;
    return {.method = "DELETE", .path = "/v1/attachments", .query = {{"ids", ids}}};
}

}  // namespace vfmgr
