// SPDX-License-Identifier: Apache-2.0
// Functions that are new in CUDA 11.3, 11.7 and 12.1. A DMA-BUF is a udmabuf of the same pages
// where the kernel has /dev/udmabuf; elsewhere a memfd of the same length stands for it, which is
// no DMA-BUF.
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fakes/gpu/dma_buf.hpp"
#include "tests/fakes/gpu/standin.hpp"

namespace vfmgr::standin {

int const newest_attribute = 200;

}  // namespace vfmgr::standin

namespace {

using namespace vfmgr::standin;

int as_udmabuf(Physical const& physical, std::size_t offset, std::size_t bytes) {
    auto const device = ::open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    if (device < 0) return -1;
    udmabuf_create expected{};
    expected.memfd = static_cast<std::uint32_t>(physical.descriptor);
    expected.flags = UDMABUF_FLAGS_CLOEXEC;
    expected.offset = offset;
    expected.size = bytes;
    auto const made = ::ioctl(device, UDMABUF_CREATE, &expected);
    ::close(device);
    return made;
}

int as_memfd(std::uint64_t address, std::size_t bytes) {
    auto const made = ::memfd_create(memfd_name_of(address).c_str(), MFD_CLOEXEC);
    if (made >= 0 && ::ftruncate(made, static_cast<off_t>(bytes)) == 0) return made;
    ::close(made);
    return -1;
}

}  // namespace

extern "C" {

int cuMemGetHandleForAddressRange(void* handle, unsigned long long address, std::size_t bytes,
                                  int type, unsigned long long flags) {
    auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    auto const& personality = state().personality;
    if (flags != 0 || personality == "refused" || personality == "geforce" ||
        personality == "peermem")
        return not_supported;
    auto const* const region = region_of(address, bytes);
    if (type != 1 || !region || region->kind == Kind::managed || address % page != 0 ||
        bytes % page != 0 || bytes == 0)
        return invalid_value;
    auto made = as_udmabuf(*region->physical, address - begin_of(region), bytes);
    if (made < 0) made = as_memfd(address, bytes);
    if (made < 0) return 304;  // CUDA_ERROR_OPERATING_SYSTEM
    if (personality == "leaky") ::dup(made);
    *static_cast<int*>(handle) = made;
    return success;
}

int cuFlushGPUDirectRDMAWrites(int target, int scope) {
    if (state().personality == "no-flush") return not_supported;
    if (target != 0 || (scope != 100 && scope != 200)) return invalid_value;
    state().flushed = true;
    return success;
}

int cuCtxSetFlags(unsigned flags) {
    if ((flags & ~0xffU) != 0) return invalid_value;
    if (!state().current) return invalid_context;
    state().current->flags = flags;
    return success;
}

}  // extern "C"
