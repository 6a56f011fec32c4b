// SPDX-License-Identifier: Apache-2.0
// NCCL, opened at run time and never closed: it has threads of its own. It uses the primary
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
    // Fails with a remedy where the library is missing or too old.
    [[nodiscard]] static Result<std::unique_ptr<Nccl const>> open(
        std::string const& library = nccl_library);

    NcclCalls calls{};
    std::string version;  // "2.27.3"

    // Describes a call that returned anything but 0: NCCL's explanation, and the remedy.
    [[nodiscard]] Error refusal(char const* call, NcclResult result) const;
    [[nodiscard]] Result<void> done(char const* call, NcclResult result) const;
};

// "2.27.3" for 22703, "2.8.4" for 2804: NCCL_VERSION_CODE counts differently since 2.9.
[[nodiscard]] std::string nccl_version_text(int code);

}  // namespace vfmgr::guest::gpu
