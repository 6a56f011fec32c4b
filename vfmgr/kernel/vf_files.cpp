// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/vf_files.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <unistd.h>

#include <algorithm>

#include "api/os/descriptor.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;

// The driver's spelling ("Follow") of each LinkState.
constexpr std::array<std::pair<LinkState, std::string_view>, 3> policies = {
    {{LinkState::auto_, "Follow"}, {LinkState::enable, "Up"}, {LinkState::disable, "Down"}}};

fs::path ofed_folder(LinuxKernelRoots const& roots, VfId const& vf) {
    return pci_folder(roots, vf.pf) / "sriov" / std::to_string(vf.index);
}

std::string_view ofed_name(VfAttribute attribute) {
    switch (attribute) {
        case VfAttribute::node_guid:
            return "node";
        case VfAttribute::port_guid:
            return "port";
        case VfAttribute::link_state:
            return "policy";
        default:
            return {};
    }
}

std::string ofed_text(VfSpec const& desired, VfAttribute attribute) {
    if (attribute == VfAttribute::node_guid) return to_string(*desired.node_guid);
    if (attribute == VfAttribute::port_guid) return to_string(*desired.port_guid);
    for (auto const& [state, text] : policies)
        if (state == desired.link_state) return std::string(text);
    return {};
}

std::optional<Guid> read_guid(fs::path const& file) {
    auto const text = read_text(file);
    if (!text) return std::nullopt;
    auto const guid = Guid::parse(*text);
    return guid ? std::optional(*guid) : std::nullopt;
}

std::optional<LinkState> read_policy(fs::path const& file) {
    auto const text = read_text(file);
    for (auto const& [state, name] : policies)
        if (text && *text == name) return state;
    return std::nullopt;
}

// Reads the first 256 bytes, or fewer: all but 64 need CAP_SYS_ADMIN.
std::string read_configuration(fs::path const& file) {
    std::string bytes(PCI_CFG_SPACE_SIZE, '\0');
    FileDescriptor const fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    auto const got = fd ? ::read(fd.get(), bytes.data(), bytes.size()) : -1;
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return bytes;
}

std::optional<std::uint16_t> number_at(std::string_view bytes, std::size_t at, unsigned octets) {
    if (at + octets > bytes.size()) return std::nullopt;
    unsigned value = 0;
    for (unsigned i = 0; i < octets; ++i)
        value |= static_cast<unsigned>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
    return static_cast<std::uint16_t>(value);
}

}  // namespace

std::optional<VfFile> vf_file(LinuxKernelRoots const& roots, VfId const& vf, PciAddress const& pci,
                              VfSpec const& desired, VfAttribute attribute) {
    if (empty(only(desired, attribute))) return std::nullopt;
    VfFile file;
    if (attribute == VfAttribute::msix_vectors) {
        file = {pci_folder(roots, pci) / "sriov_vf_msix_count",
                std::to_string(*desired.msix_vectors)};
    } else if (auto const name = ofed_name(attribute); !name.empty()) {
        file = {ofed_folder(roots, vf) / name, ofed_text(desired, attribute)};
    }
    std::error_code error;
    return fs::exists(file.path, error) ? std::optional(std::move(file)) : std::nullopt;
}

VfSpec read_vf_files(LinuxKernelRoots const& roots, VfId const& vf, PciAddress const& pci) {
    VfSpec spec;
    spec.msix_vectors = msix_vectors_in(read_configuration(pci_folder(roots, pci) / "config"));
    auto const folder = ofed_folder(roots, vf);
    std::error_code error;
    if (!fs::exists(folder, error)) return spec;
    spec.node_guid = read_guid(folder / "node");
    spec.port_guid = read_guid(folder / "port");
    spec.link_state = read_policy(folder / "policy");
    return spec;
}

std::optional<std::uint16_t> msix_vectors_in(std::string_view configuration) {
    // Capabilities are a list of at most 48 entries in these 256 bytes: a longer one is a loop.
    constexpr int capabilities_max = 48;
    auto at = number_at(configuration, PCI_CAPABILITY_LIST, 1);
    for (int i = 0; at && *at >= PCI_STD_HEADER_SIZEOF && i < capabilities_max; ++i) {
        if (number_at(configuration, *at, 1) == PCI_CAP_ID_MSIX) {
            auto const flags = number_at(configuration, *at + PCI_MSIX_FLAGS, 2);
            if (!flags) return std::nullopt;
            return static_cast<std::uint16_t>((*flags & PCI_MSIX_FLAGS_QSIZE) + 1);
        }
        at = number_at(configuration, *at + PCI_CAP_LIST_NEXT, 1);
    }
    return std::nullopt;
}

}  // namespace vfmgr
