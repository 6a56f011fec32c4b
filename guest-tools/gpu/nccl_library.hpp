// SPDX-License-Identifier: Apache-2.0
// NCCL, opened where it runs, and never closed: it has threads of its own. It uses the primary
// contexts of the GPUs, as GpuContext does. Owned by the process of the all-reduce; one thread.
#pragma once

#include <memory>
#include <string>

#include "api/types/problem.hpp"
#include "guest-tools/gpu/nccl_abi.hpp"

namespace vfmgr::guest::gpu {

inline constexpr char const* nccl_library = "libnccl.so.2";

class Nccl {
  public:
    // Refuses with a remedy where the library is not there, or too old.
    [[nodiscard]] static Result<std::unique_ptr<Nccl const>> open(
        std::string const& library = nccl_library);

    NcclCalls calls{};
    std::string version;  // "2.27.3"

    // Of a call that answered with anything but 0: what NCCL says of it, and the cure.
    [[nodiscard]] Error refusal(char const* call, NcclResult result) const;
    [[nodiscard]] Result<void> done(char const* call, NcclResult result) const;
};

// "2.27.3" for 22703, "2.8.4" for 2804: NCCL_VERSION_CODE counts in another way since 2.9.
[[nodiscard]] std::string nccl_version_text(int code);

}  // namespace vfmgr::guest::gpu
