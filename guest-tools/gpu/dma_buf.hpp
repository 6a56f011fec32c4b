// SPDX-License-Identifier: Apache-2.0
// GPU memory as a DMA-BUF descriptor, which a NIC's driver can register. The descriptor keeps the
// memory alive after it was freed: whoever holds it closes it after registering.
// Values; the thread of the context.
#pragma once

#include "api/types/file_descriptor.hpp"
#include "guest-tools/gpu/gpu_memory.hpp"

namespace vfmgr::guest::gpu {

// A range in whole pages of the host, and where in it the wished one begins.
struct PageRange {
    GpuRange pages;
    std::size_t offset = 0;
};
[[nodiscard]] PageRange whole_pages(GpuRange wished, std::size_t page_bytes);
[[nodiscard]] std::size_t host_page_bytes();

struct DmaBufExport {
    FileDescriptor descriptor;
    PageRange range;
};
// Any range of one allocation. Managed memory is refused: it may be the host's at any time, and
// what is then measured is no GPU's.
[[nodiscard]] Result<DmaBufExport> export_dma_buf(GpuContext const& context, GpuRange wished);

}  // namespace vfmgr::guest::gpu
