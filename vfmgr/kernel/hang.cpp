// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/hang.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "vfmgr/kernel/in_use.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;

// Lists every process except this one.
std::vector<std::int32_t> processes(fs::path const& proc) {
    std::vector<std::int32_t> pids;
    for (auto const& name : entries(proc)) {
        std::int32_t pid = 0;
        auto const* const end = name.data() + name.size();
        auto const [stopped, error] = std::from_chars(name.data(), end, pid);
        if (error == std::errc{} && stopped == end && pid > 0 && pid != ::getpid())
            pids.push_back(pid);
    }
    return pids;
}

// Returns the PF when the descriptor is its sriov_numvfs.
std::optional<PciAddress> pf_of_numvfs(fs::path const& descriptor) {
    std::error_code error;
    auto const file = fs::read_symlink(descriptor, error);
    if (error || file.filename() != "sriov_numvfs") return std::nullopt;
    auto const pf = PciAddress::parse(file.parent_path().filename().string());
    return pf ? std::optional(*pf) : std::nullopt;
}

// A reader hangs too, but blocks no other process.
bool for_writing(fs::path const& information) {
    auto const text = read_text(information).value_or("");
    auto const at = text.find("flags:");
    if (at == text.npos) return false;
    auto const digits = text.find_first_of("01234567", at);
    unsigned flags = 0;
    if (digits != text.npos)
        std::from_chars(text.data() + digits, text.data() + text.size(), flags, 8);
    return (flags & static_cast<unsigned>(O_ACCMODE)) != O_RDONLY;
}

// Returns "D" from "812 (a b) c) D 1 …": the name may hold anything, parentheses too.
char state_in(std::string const& stat) {
    auto const end = stat.rfind(')');
    return end != stat.npos && end + 2 < stat.size() ? stat[end + 2] : '?';
}

// Computes VF addresses from the PF's capability (SR-IOV 1.1, 2.1.2), whether or not the VFs exist.
struct VfRouting {
    std::uint64_t offset = 0, stride = 0;

    [[nodiscard]] static std::optional<VfRouting> of(LinuxKernelRoots const& roots,
                                                     PciAddress const& pf) {
        auto const offset = read_number(pci_folder(roots, pf) / "sriov_offset");
        auto const stride = read_number(pci_folder(roots, pf) / "sriov_stride");
        if (!offset || !stride) return std::nullopt;
        return VfRouting{*offset, *stride};
    }
    [[nodiscard]] std::optional<PciAddress> address(PciAddress pf, std::uint16_t index) const {
        auto const routing_id = (std::uint64_t{pf.bus} << 8U | std::uint64_t{pf.device} << 3U |
                                 std::uint64_t{pf.function}) +
                                offset + stride * index;
        if (routing_id > 0xffff) return std::nullopt;
        pf.bus = static_cast<std::uint8_t>(routing_id >> 8U);
        pf.device = static_cast<std::uint8_t>(routing_id >> 3U & 0x1fU);
        pf.function = static_cast<std::uint8_t>(routing_id & 7U);
        return pf;
    }
};

}  // namespace

std::string where_it_hangs(fs::path const& proc, std::int32_t pid) {
    auto const tasks = proc / std::to_string(pid) / "task";
    std::string where;
    for (auto const& task : entries(tasks)) {
        auto const symbol = read_text(tasks / task / "wchan").value_or("");
        if (symbol.empty() || symbol == "0") continue;
        bool const uninterruptible = state_in(read_text(tasks / task / "stat").value_or("")) == 'D';
        if (where.empty() || uninterruptible) where = " in " + symbol;
        if (uninterruptible) break;
    }
    return where;
}

std::vector<NumVfsWriter> find_numvfs_writers(LinuxKernelRoots const& roots) {
    std::vector<NumVfsWriter> writers;
    for (auto const pid : processes(roots.proc)) {
        auto const process = roots.proc / std::to_string(pid);
        for (auto const& fd : entries(process / "fd")) {
            auto const pf = pf_of_numvfs(process / "fd" / fd);
            if (!pf || !for_writing(process / "fdinfo" / fd)) continue;
            writers.push_back({*pf, pid, read_text(process / "comm").value_or("?")});
            break;
        }
    }
    return writers;
}

std::string describe(LinuxKernelRoots const& roots, NumVfsWriter const& writer) {
    return fmt::format("{} (pid {}) changes the number of VFs of {} and hangs{}", writer.comm,
                       writer.pid, to_string(writer.pf), where_it_hangs(roots.proc, writer.pid));
}

std::optional<HeldRemoval> find_held_removal(LinuxKernelRoots const& roots, PfState const& pf) {
    for (auto const& vf : pf.vfs)
        if (!vf.driver && !vf.holders.empty()) return HeldRemoval{vf.index, vf.holders.front()};
    if (!pf.info.driver.empty()) return std::nullopt;
    auto const routing = VfRouting::of(roots, pf.info.pci);
    if (!routing) return std::nullopt;
    for (std::uint16_t index = 0; index < pf.info.total_vfs; ++index) {
        if (std::ranges::find(pf.vfs, index, &VfState::index) != pf.vfs.end()) continue;
        auto const vf = routing->address(pf.info.pci, index);
        if (!vf || driver_of(roots, *vf)) continue;
        auto const nodes = vfio_nodes_of(roots, *vf);
        auto const holders = nodes.empty() ? Holders{} : find_holders(roots, nodes);
        if (!holders) continue;
        if (auto const all = holders_of(*holders, nodes); !all.empty())
            return HeldRemoval{index, all.front()};
    }
    return std::nullopt;
}

std::string describe(PciAddress const& pf, HeldRemoval const& removal) {
    return fmt::format("the removal of VF {} of {} hangs: {} (pid {}) holds it open", removal.vf,
                       to_string(pf), removal.holder.comm, removal.holder.pid);
}

}  // namespace vfmgr
