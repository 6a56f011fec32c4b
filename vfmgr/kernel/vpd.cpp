// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/vpd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "api/os/descriptor.hpp"

namespace vfmgr {
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

}  // namespace vfmgr
