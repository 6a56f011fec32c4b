// SPDX-License-Identifier: Apache-2.0
// Page-aligned memory, huge pages where it is long, with a key for an RDMA device. Owned by one
// session; deregistered before it is unmapped. One thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "api/types/stream.hpp"
#include "guest-tools/verify/handles.hpp"

namespace vfmgr::verify {

// How the device may order its writes to the memory of such a stream, as an ibv_access_flag: as the
// bus likes where only a completion says that they are there, which always comes after them. Not
// where somebody looks into the memory for its last byte: the others must have come before it. One
// that a kernel or device doesn't know is left out by libibverbs.
[[nodiscard]] unsigned write_order(StreamKind kind);

class RegisteredMemory {
  public:
    // `access` is ibv_access_flags. `what` names the region in errors: "write region".
    [[nodiscard]] static Result<RegisteredMemory> make(ibv_pd* domain, std::size_t bytes,
                                                       unsigned access, std::string_view what);
    [[nodiscard]] std::span<std::byte> bytes() const {
        return {pages_.get(), pages_.get_deleter().bytes};
    }
    [[nodiscard]] std::uint32_t local_key() const { return region_->lkey; }
    // As the other end needs it to write or read here.
    [[nodiscard]] MemoryRegion remote() const;

  private:
    struct Unmap {
        std::size_t bytes = 0;
        void operator()(std::byte* pages) const noexcept;
    };
    using Pages = std::unique_ptr<std::byte, Unmap>;
    [[nodiscard]] static Result<Pages> map(std::size_t bytes, std::string_view what);
    RegisteredMemory(Pages pages, VerbsRegion region)
        : pages_(std::move(pages)), region_(std::move(region)) {}

    Pages pages_;
    VerbsRegion region_;
};

}  // namespace vfmgr::verify
