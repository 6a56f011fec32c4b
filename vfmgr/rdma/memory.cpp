// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "vfmgr/rdma/faults.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::size_t huge_page_bytes = 2 << 20;  // x86 and arm64 with pages of 4 KiB

std::size_t round_up(std::size_t bytes) {
    auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

}  // namespace

unsigned write_order(StreamKind kind) {
    bool const for_bandwidth = kind == StreamKind::one_sided || kind == StreamKind::send;
    return for_bandwidth ? unsigned{IBV_ACCESS_RELAXED_ORDERING} : 0U;
}

void RegisteredMemory::Unmap::operator()(std::byte* pages) const noexcept {
    ::munmap(pages, bytes);
}

// From two MiB on, aligns to a huge page and requests transparent huge pages: a device's
// translation then has one entry for 512 pages. It does not take pages of hugetlbfs, as perftest
// does: those were set aside for VMs and databases, and a test must not use them up.
Result<RegisteredMemory::Pages> RegisteredMemory::map(std::size_t bytes, std::string_view what) {
    auto const spare = bytes < huge_page_bytes ? 0 : huge_page_bytes;
    void* const mapped =
        ::mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return fail({Problem::limit_exceeded,
                     fmt::format("{} bytes of memory can't be allocated ({})", bytes, what),
                     "free memory on this machine",
                     {errno_cause("mmap", errno)}});
    auto* const begin = static_cast<std::byte*>(mapped);
    auto const misplaced = reinterpret_cast<std::uintptr_t>(begin) % huge_page_bytes;
    auto const head = spare == 0 || misplaced == 0 ? 0 : huge_page_bytes - misplaced;
    if (head > 0) ::munmap(begin, head);
    if (spare > head) ::munmap(begin + head + round_up(bytes), spare - head);
    Pages pages(begin + head, Unmap{bytes});
    if (spare > 0) ::madvise(pages.get(), bytes, MADV_HUGEPAGE);
    // Touched now: registering pins the pages anyway, and a fault must not be in a timing.
    std::memset(pages.get(), 0, bytes);
    return pages;
}

Result<RegisteredMemory> RegisteredMemory::make(ibv_pd* pd, std::size_t bytes, unsigned access,
                                                std::string_view what) {
    VFMGR_TRY(auto pages, map(bytes, what));
    VerbsMr mr(ibv_reg_mr(pd, pages.get(), bytes, static_cast<int>(access)));
    if (mr) return RegisteredMemory(std::move(pages), std::move(mr));
    return fail(verbs_error(pd->context,
                            fmt::format("{} bytes of memory can't be registered ({})", bytes, what),
                            "ibv_reg_mr", errno));
}

MemoryRegion RegisteredMemory::remote() const {
    return {reinterpret_cast<std::uint64_t>(pages_.get()), mr_->rkey, bytes().size()};
}

}  // namespace vfmgr::verify
