// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "guest-tools/verify/faults.hpp"

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
    return fail(verbs_error(domain->context,
                            fmt::format("{} bytes can't be registered as {}", bytes, what),
                            "ibv_reg_mr", errno));
}

MemoryRegion RegisteredMemory::remote() const {
    return {reinterpret_cast<std::uint64_t>(pages_.get()), region_->rkey, bytes().size()};
}

}  // namespace vfmgr::verify
