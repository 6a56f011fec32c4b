// SPDX-License-Identifier: Apache-2.0
// Exports GPU memory as a DMA-BUF descriptor, which a NIC's driver can register. The descriptor
// keeps the memory alive after it is freed, so its holder closes it after registering. Values; the
// thread of the context.
#pragma once

#include "api/os/descriptor.hpp"
#include "guest-tools/gpu/gpu_memory.hpp"

namespace vfmgr::guest::gpu {

// A range in whole pages of the host, and the offset at which the requested range begins in it.
struct PageRange {
    GpuRange pages;
    std::size_t offset = 0;
};
[[nodiscard]] PageRange whole_pages(GpuRange requested, std::size_t page_bytes);
[[nodiscard]] std::size_t host_page_bytes();

struct DmaBufExport {
    FileDescriptor descriptor;
    PageRange range;
};
// Exports any range of one allocation. Refuses managed memory: it may move to the host at any time,
// and a measurement would then not be of the GPU.
[[nodiscard]] Result<DmaBufExport> export_dma_buf(GpuContext const& context, GpuRange requested);

}  // namespace vfmgr::guest::gpu
