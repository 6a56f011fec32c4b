// SPDX-License-Identifier: Apache-2.0
// Page-aligned memory, with huge pages for large sizes, with a key for an RDMA device. Owned by one
// session; deregistered before it is unmapped. One thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "api/types/guest.hpp"
#include "vfmgr/rdma/device.hpp"

namespace vfmgr::verify {

// How the device may order its writes to the memory of such a stream, as an ibv_access_flag.
// Relaxed where only a completion shows that the writes have arrived, because a completion always
// follows them. Strict where a test polls memory for the last byte: all other bytes must have
// arrived before it. libibverbs leaves out a flag that a kernel or device doesn't know.
[[nodiscard]] unsigned write_order(StreamKind kind);

// A local part of registered memory.
struct Sge {
    std::span<std::byte> bytes;
    std::uint32_t key = 0;
};

class RegisteredMemory {
  public:
    // `access` is ibv_access_flags. `what` names the MR in errors: "write region".
    [[nodiscard]] static Result<RegisteredMemory> make(ibv_pd* pd, std::size_t bytes,
                                                       unsigned access, std::string_view what);
    [[nodiscard]] std::span<std::byte> bytes() const {
        return {pages_.get(), pages_.get_deleter().bytes};
    }
    [[nodiscard]] std::uint32_t local_key() const { return mr_->lkey; }
    [[nodiscard]] Sge sge() const { return {bytes(), local_key()}; }
    [[nodiscard]] Sge sge(std::size_t offset, std::size_t length) const {
        return {bytes().subspan(offset, length), local_key()};
    }
    // The key and address that the other end needs to write or read here.
    [[nodiscard]] MemoryRegion remote() const;

  private:
    struct Unmap {
        std::size_t bytes = 0;
        void operator()(std::byte* pages) const noexcept;
    };
    using Pages = std::unique_ptr<std::byte, Unmap>;
    [[nodiscard]] static Result<Pages> map(std::size_t bytes, std::string_view what);
    RegisteredMemory(Pages pages, VerbsMr mr) : pages_(std::move(pages)), mr_(std::move(mr)) {}

    Pages pages_;
    VerbsMr mr_;
};

}  // namespace vfmgr::verify
