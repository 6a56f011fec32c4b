// SPDX-License-Identifier: Apache-2.0
// PCI functions: their names, vital product data, and values of the configuration space. Any
// thread.
#include "vfmgr/kernel/pci.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "api/os/descriptor.hpp"
#include "vfmgr/kernel/steps.hpp"

extern "C" {
#include <pci/pci.h>
}

#include <array>
#include <cstdlib>

namespace vfmgr {
namespace {

// Uses only the text database: libpci leaks its udev handle where udev has no hardware database.
constexpr int flags = PCI_LOOKUP_NO_NUMBERS | PCI_LOOKUP_NO_HWDB;

void ignore(char*, ...) {}

// libpci calls it when out of memory and expects it not to return; clang wants the attribute that
// libpci's own type has.
__attribute__((noreturn)) void give_up(char*, ...) {
    std::abort();
}

// The result of libpci points into the buffer or to a constant of libpci.
std::string lookup(pci_access* access, int what, std::uint64_t vendor, std::uint64_t device) {
    std::array<char, 256> buffer{};
    auto const* const name =
        pci_lookup_name(access, buffer.data(), static_cast<int>(buffer.size()), what,
                        static_cast<int>(vendor), static_cast<int>(device));
    return name == nullptr ? std::string() : std::string(name);
}

}  // namespace

void PciNameBook::Closed::operator()(pci_access* access) const noexcept {
    pci_cleanup(access);
}

// Skips pci_init(): names need no access to devices, and pci_init() exits the process on errors. It
// would have set these three callbacks, which lookups call.
PciNameBook::PciNameBook() : access_(pci_alloc()) {
    access_->error = give_up;
    access_->warning = ignore;
    access_->debug = ignore;
}

Result<PciNames> PciNameBook::look_up(LinuxKernelRoots const& roots, PciAddress const& pci) {
    auto const folder = pci_folder(roots, pci);
    VFMGR_TRY(auto const vendor, read_number(folder / "vendor"));
    VFMGR_TRY(auto const device, read_number(folder / "device"));
    std::lock_guard const lock(mutex_);
    auto const [known, added] = known_.try_emplace({vendor, device});
    if (added) {
        known->second.ids = {static_cast<std::uint16_t>(vendor),
                             static_cast<std::uint16_t>(device)};
        known->second.vendor = lookup(access_.get(), PCI_LOOKUP_VENDOR | flags, vendor, device);
        known->second.device = lookup(access_.get(), PCI_LOOKUP_DEVICE | flags, vendor, device);
        if (known->second.vendor.empty()) known->second.vendor = fmt::format("{:04x}", vendor);
        if (known->second.device.empty()) known->second.device = fmt::format("{:04x}", device);
    }
    return known->second;
}

namespace {

// The serial is near the beginning, and some devices take a millisecond for four bytes.
constexpr std::size_t bytes_max = 1024;
constexpr unsigned large_resource = 0x80;
constexpr unsigned read_only_part = 0x90;
constexpr unsigned end_tag = 0x78;

unsigned octet(std::string_view bytes, std::size_t at) {
    return static_cast<unsigned char>(bytes[at]);
}

// Takes the next resource, or field, of `length` bytes after a head; the remainder stays in `rest`.
std::optional<std::string_view> take(std::string_view& rest, std::size_t head, std::size_t length) {
    if (rest.size() < head + length) return std::nullopt;
    auto const body = rest.substr(head, length);
    rest.remove_prefix(head + length);
    return body;
}

std::optional<std::string> trimmed(std::string_view text) {
    constexpr std::string_view padding("\0 \t\r\n", 5);
    auto const first = text.find_first_not_of(padding);
    if (first == text.npos) return std::nullopt;
    text = text.substr(first, text.find_last_not_of(padding) - first + 1);
    auto const printable = [](char c) { return c >= ' ' && c <= '~'; };
    if (!std::ranges::all_of(text, printable)) return std::nullopt;
    return std::string(text);
}

// A field is two letters, a length, a value.
std::optional<std::string> serial_in(std::string_view fields) {
    constexpr std::size_t head = 3;
    while (fields.size() >= head) {
        auto const name = fields.substr(0, 2);
        auto const value = take(fields, head, octet(fields, 2));
        if (!value) return std::nullopt;
        if (name == "SN") return trimmed(*value);
    }
    return std::nullopt;
}

std::string read_bytes(FileDescriptor const& file) {
    std::array<char, bytes_max> buffer{};
    auto const got = ::read(file.get(), buffer.data(), buffer.size());
    return got <= 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(got));
}

}  // namespace

std::optional<std::string> vpd_serial(std::string_view vpd) {
    while (!vpd.empty()) {
        auto const tag = octet(vpd, 0);
        bool const large = (tag & large_resource) != 0;
        std::size_t const head = large ? 3 : 1;
        if ((tag & 0xf8U) == end_tag || vpd.size() < head) return std::nullopt;
        std::size_t const length =
            large ? octet(vpd, 1) + std::size_t{octet(vpd, 2)} * 256 : tag & 7U;
        // A truncated part may still contain the serial.
        if (tag == read_only_part) return serial_in(vpd.substr(head, length));
        if (!take(vpd, head, length)) return std::nullopt;
    }
    return std::nullopt;
}

std::optional<std::string> VpdBook::serial_of(LinuxKernelRoots const& roots,
                                              PciAddress const& pci) {
    std::lock_guard const lock(mutex_);
    FileDescriptor const file(
        ::open((pci_folder(roots, pci) / "vpd").c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status{};
    if (!file || ::fstat(file.get(), &status) != 0) return std::nullopt;
    auto const [known, added] = known_.try_emplace(pci);
    if (added || known->second.file != status.st_ino)
        known->second = {status.st_ino, vpd_serial(read_bytes(file))};
    return known->second.serial;
}

namespace {

namespace fs = std::filesystem;

Result<void> restore(fs::path const& file, std::string const& value) {
    if (read_text(file) == value) return {};
    auto const error = write_text(file, value);
    if (error == 0) return {};
    return fail(refused_write(
        file, fmt::format("{} could not be restored to \"{}\"", file.string(), value), error));
}

}  // namespace

Error refused_write(fs::path const& file, std::string const& detail, int error) {
    return {Problem::kernel_refused,
            fmt::format("{}: {}", detail, std::generic_category().message(error)),
            "see the kernel's log for the driver's reason: journalctl -k",
            {errno_cause("write " + file.string(), error)}};
}

std::optional<bool> read_drivers_autoprobe(LinuxKernelRoots const& roots, PciAddress const& pf) {
    auto const text = read_text(pci_folder(roots, pf) / "sriov_drivers_autoprobe");
    if (!text || (*text != "0" && *text != "1")) return std::nullopt;
    return *text == "1";
}

std::string read_reset_methods(LinuxKernelRoots const& roots, PciAddress const& pci) {
    return read_text(pci_folder(roots, pci) / "reset_method").value_or("");
}

Result<void> set_override(LinuxKernelRoots const& roots, PciAddress const& pci,
                          std::string const& driver) {
    auto const file = pci_folder(roots, pci) / "driver_override";
    // "\n" clears it; an empty write would do nothing.
    auto const error = write_text(file, driver + "\n");
    if (error == 0) return {};
    return fail(refused_write(
        file, fmt::format("the driver_override of {} could not be set", to_string(pci)), error));
}

// Tries each value, even after another has failed.
Result<Observed> perform_step(LinuxKernelRoots const& roots, SetPciValues const& step, Deadline) {
    VFMGR_TRY(auto const vfs, list_vfs(roots, step.pf));
    Result<void> outcome;
    auto const note = [&](Result<void> const& done) {
        if (!done && outcome) outcome = done;
    };
    if (step.drivers_autoprobe)
        note(restore(pci_folder(roots, step.pf) / "sriov_drivers_autoprobe",
                     *step.drivers_autoprobe ? "1" : "0"));
    for (auto const index : step.no_override)
        if (auto const vf = vfs.find(index); vf != vfs.end())
            note(set_override(roots, vf->second, ""));
    for (auto const& [index, methods] : step.reset_methods)
        if (auto const vf = vfs.find(index); vf != vfs.end())
            note(restore(pci_folder(roots, vf->second) / "reset_method", methods));
    VFMGR_CHECK(outcome);
    return Observed{};
}

}  // namespace vfmgr
