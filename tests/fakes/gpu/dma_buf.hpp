// SPDX-License-Identifier: Apache-2.0
// Checks that a descriptor which the stand-in exported has the given memory at an offset, for a
// stand-in that maps it as a NIC does. Any thread, while no other code writes to that memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace vfmgr::standin {

// If the kernel has no udmabuf, a memfd stands for the DMA-BUF. No page can be in two memfds, so
// the name contains the address of the memory that it stands for.
inline constexpr char const* memfd_name = "standin-no-dmabuf";

inline std::string memfd_name_of(std::uint64_t address) {
    char name[64];
    std::snprintf(name, sizeof name, "%s %llx", memfd_name,
                  static_cast<unsigned long long>(address));
    return name;
}

// The address that a memfd stands for; 0 for any other descriptor.
inline std::uint64_t address_of_memfd(int descriptor) {
    char path[64], target[128]{};
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (::readlink(path, target, sizeof target - 1) < 0) return 0;
    auto const prefix = std::string("/memfd:") + memfd_name + " %llx";
    unsigned long long address = 0;
    return std::sscanf(target, prefix.c_str(), &address) == 1 ? address : 0;
}

// Writes through the descriptor, checks that the bytes appear at `address`, and restores them.
inline bool maps_to(int descriptor, std::uint64_t offset, std::uint64_t bytes,
                    std::uint64_t address) {
    auto const page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    auto const head = offset % page;
    void* const mapped = ::mmap(nullptr, head + bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                                descriptor, static_cast<off_t>(offset - head));
    if (mapped == MAP_FAILED) return false;
    auto volatile* const there = static_cast<unsigned char volatile*>(mapped) + head;
    auto const volatile* const here = reinterpret_cast<unsigned char const volatile*>(address);
    bool same = true;
    auto const look = [&](std::uint64_t at) {
        auto const before = there[at];
        same = same && here[at] == before;
        there[at] = static_cast<unsigned char>(~before);
        same = same && here[at] == static_cast<unsigned char>(~before);
        there[at] = before;
    };
    for (std::uint64_t at = 0; at < bytes && same; at += page) look(at);
    if (same) look(bytes - 1);
    ::munmap(mapped, head + bytes);
    return same;
}

inline bool holds(int descriptor, std::uint64_t offset, std::uint64_t bytes,
                  std::uint64_t address) {
    auto const end = ::lseek(descriptor, 0, SEEK_END);
    if (end < 0 || bytes == 0) return false;
    auto const length = static_cast<std::uint64_t>(end);
    if (offset > length || bytes > length - offset) return false;
    if (auto const stands_for = address_of_memfd(descriptor); stands_for != 0)
        return stands_for + offset == address;
    return maps_to(descriptor, offset, bytes, address);
}

}  // namespace vfmgr::standin
