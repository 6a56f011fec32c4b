// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

namespace vfmgr::verify {

void RegisteredMemory::Unmap::operator()(std::byte* pages) const noexcept {
    ::munmap(pages, bytes);
}

Result<RegisteredMemory> RegisteredMemory::make(ibv_pd* domain, std::size_t bytes, unsigned access,
                                                std::string_view what) {
    // Populated now: registering pins the pages anyway, and a fault must not be in a timing.
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (mapped == MAP_FAILED) {
        Error error{Problem::limit_exceeded,
                    fmt::format("no {} bytes of memory for the {}", bytes, what),
                    "free memory on this machine"};
        error.causes.push_back(errno_cause("mmap", errno));
        return fail(std::move(error));
    }
    Pages pages(static_cast<std::byte*>(mapped), Unmap{bytes});
    VerbsRegion region(ibv_reg_mr(domain, mapped, bytes, static_cast<int>(access)));
    if (region) return RegisteredMemory(std::move(pages), std::move(region));
    auto const error_number = errno;
    Error error{Problem::kernel_refused,
                fmt::format("{} did not register {} bytes as {}", domain->context->device->name,
                            bytes, what),
                "see the kernel log"};
    if (error_number == ENOMEM)
        // The default limit is 8 MiB (kernel-and-libvirt.md, more facts).
        error.remedy =
            "allow more locked memory: LimitMEMLOCK=infinity in the unit, or run as root";
    error.causes.push_back(errno_cause("ibv_reg_mr", error_number));
    return fail(std::move(error));
}

MemoryRegion RegisteredMemory::remote() const {
    return {reinterpret_cast<std::uint64_t>(pages_.get()), region_->rkey, bytes().size()};
}

}  // namespace vfmgr::verify
