// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_error.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace vfmgr {
namespace {

struct CodeName {
    int code;
    std::string_view name;
};

// The codes that our calls can return.
constexpr std::array code_names = {
    CodeName{VIR_ERR_INTERNAL_ERROR, "VIR_ERR_INTERNAL_ERROR"},
    CodeName{VIR_ERR_NO_MEMORY, "VIR_ERR_NO_MEMORY"},
    CodeName{VIR_ERR_NO_SUPPORT, "VIR_ERR_NO_SUPPORT"},
    CodeName{VIR_ERR_NO_CONNECT, "VIR_ERR_NO_CONNECT"},
    CodeName{VIR_ERR_INVALID_CONN, "VIR_ERR_INVALID_CONN"},
    CodeName{VIR_ERR_INVALID_DOMAIN, "VIR_ERR_INVALID_DOMAIN"},
    CodeName{VIR_ERR_INVALID_ARG, "VIR_ERR_INVALID_ARG"},
    CodeName{VIR_ERR_OPERATION_FAILED, "VIR_ERR_OPERATION_FAILED"},
    CodeName{VIR_ERR_XML_ERROR, "VIR_ERR_XML_ERROR"},
    CodeName{VIR_ERR_OPERATION_DENIED, "VIR_ERR_OPERATION_DENIED"},
    CodeName{VIR_ERR_SYSTEM_ERROR, "VIR_ERR_SYSTEM_ERROR"},
    CodeName{VIR_ERR_RPC, "VIR_ERR_RPC"},
    CodeName{VIR_ERR_NO_DOMAIN, "VIR_ERR_NO_DOMAIN"},
    CodeName{VIR_ERR_NO_NETWORK, "VIR_ERR_NO_NETWORK"},
    CodeName{VIR_ERR_AUTH_FAILED, "VIR_ERR_AUTH_FAILED"},
    CodeName{VIR_ERR_OPERATION_INVALID, "VIR_ERR_OPERATION_INVALID"},
    CodeName{VIR_ERR_CONFIG_UNSUPPORTED, "VIR_ERR_CONFIG_UNSUPPORTED"},
    CodeName{VIR_ERR_OPERATION_TIMEOUT, "VIR_ERR_OPERATION_TIMEOUT"},
    CodeName{VIR_ERR_ARGUMENT_UNSUPPORTED, "VIR_ERR_ARGUMENT_UNSUPPORTED"},
    CodeName{VIR_ERR_OPERATION_ABORTED, "VIR_ERR_OPERATION_ABORTED"},
    CodeName{VIR_ERR_AUTH_CANCELLED, "VIR_ERR_AUTH_CANCELLED"},
    CodeName{VIR_ERR_OPERATION_UNSUPPORTED, "VIR_ERR_OPERATION_UNSUPPORTED"},
    CodeName{VIR_ERR_RESOURCE_BUSY, "VIR_ERR_RESOURCE_BUSY"},
    CodeName{VIR_ERR_ACCESS_DENIED, "VIR_ERR_ACCESS_DENIED"},
    CodeName{VIR_ERR_AUTH_UNAVAILABLE, "VIR_ERR_AUTH_UNAVAILABLE"},
    CodeName{VIR_ERR_DEVICE_MISSING, "VIR_ERR_DEVICE_MISSING"},
};

// Texts of libvirt 9.0.0 and 11.3.0. They choose the remedy; only "in use" has a problem of its
// own, because libvirt has no code for it.
constexpr std::string_view in_use_text = "is in use by driver";
struct KnownText {
    std::string_view part;
    std::string_view remedy;
};
constexpr std::array known_texts = {
    KnownText{"No more available PCI slots",
              "add a <controller type='pci' model='pcie-root-port'/> to the VM and restart it"},
    KnownText{in_use_text, "detach it from the VM that libvirt names"},
    KnownText{"must be manually detached",
              "bind the VF to vfio-pci: libvirt does not know its driver as a VFIO driver"},
    KnownText{"does not support IOMMU",
              "enable the IOMMU in the firmware and on the kernel's command line (intel_iommu=on)"},
    KnownText{"cannot limit locked memory",
              "let libvirtd raise limits: run it with CAP_SYS_RESOURCE"},
    KnownText{"state change lock",
              "wait until the other operation on the VM ends (virsh domjobinfo), and try again"},
};

std::string_view remedy_for(std::string_view message) {
    for (auto const& [part, remedy] : known_texts)
        if (message.find(part) != std::string_view::npos) return remedy;
    return "see libvirt's log: journalctl -u libvirtd -u virtqemud";
}

Problem problem_for(int code, int domain) {
    // A closed socket and a missed keepalive are VIR_ERR_INTERNAL_ERROR and VIR_ERR_SYSTEM_ERROR of
    // the RPC layer: only the layer distinguishes them from the hypervisor's own refusals.
    if (domain == VIR_FROM_RPC || code == VIR_ERR_RPC || code == VIR_ERR_NO_CONNECT ||
        code == VIR_ERR_INVALID_CONN)
        return Problem::unavailable;
    if (code == VIR_ERR_NO_DOMAIN) return Problem::not_found;
    return Problem::hypervisor_refused;
}

}  // namespace

std::string libvirt_code_name(int code) {
    for (auto const& [known, name] : code_names)
        if (known == code) return std::string(name);
    return fmt::format("VIR_ERR_{}", code);
}

Error libvirt_error(std::string call, std::string_view what) {
    Error error{Problem::hypervisor_refused, {}, {}};
    Cause cause{std::move(call), "VIR_ERR_OK", "libvirt gives no reason"};
    if (auto const* last = virGetLastError()) {
        error.problem = problem_for(last->code, last->domain);
        cause.code = libvirt_code_name(last->code);
        cause.text = last->message ? last->message : "libvirt gives no message";
    }
    error.causes.push_back(std::move(cause));
    auto const& message = error.causes.front().text;
    if (error.problem == Problem::hypervisor_refused &&
        message.find(in_use_text) != std::string::npos)
        error.problem = Problem::vf_in_use;
    error.detail = fmt::format("{}: {}", what, message);
    if (error.problem == Problem::unavailable)
        error.remedy = "check that libvirt runs: systemctl status libvirtd virtqemud";
    else if (error.problem == Problem::not_found)
        error.remedy = "list the VMs that libvirt knows: virsh list --all";
    else
        error.remedy = remedy_for(message);
    return error;
}

bool is_libvirt_code(Error const& error, std::string_view code_name) {
    return !error.causes.empty() && error.causes.front().code == code_name;
}

bool lacks_other_daemon(virError const& error) {
    // int1 is connect()'s errno.
    return error.domain == VIR_FROM_RPC && error.code == VIR_ERR_SYSTEM_ERROR &&
           error.int1 == ENOENT;
}

}  // namespace vfmgr
