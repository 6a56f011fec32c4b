// SPDX-License-Identifier: Apache-2.0
// A NIC driver's answers to the registration of a GPU's memory, for programs that preload this
// library and have the stand-in libcuda: SoftRoCE registers any of this process's memory and no
// DMA-BUF. VFMGR_STANDIN_NIC selects the NIC:
//   dma_buf (the default): DMA-BUFs, and no GPU's address, as without nvidia-peermem
//   peermem: a GPU's address, and no DMA-BUF (95, EOPNOTSUPP)
//   both, none; chipset: NVIDIA's driver does not let it map a DMA-BUF (524, ENOTSUPP)
//   leaky: as both, and the driver keeps a region for each registration
//   misplaced: as both, and a write to the memory arrives one page behind its place
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/fakes/gpu/dma_buf.hpp"

namespace {

constexpr int kernel_enotsupp = 524;
constexpr std::uint64_t page_bytes = 4096;

std::string_view nic() {
    char const* const expected = std::getenv("VFMGR_STANDIN_NIC");
    return expected ? expected : "dma_buf";
}

bool takes(std::string_view way) {
    return nic() == way || nic() == "both" || nic() == "misplaced" || nic() == "leaky";
}

// The stand-in's memory is a memfd with that name.
bool is_gpus(void const* address) {
    auto* const maps = std::fopen("/proc/self/maps", "re");
    if (!maps) std::abort();
    auto const expected = reinterpret_cast<std::uintptr_t>(address);
    bool found = false;
    for (char line[512]; std::fgets(line, sizeof line, maps);) {
        unsigned long begin = 0, end = 0;
        if (std::sscanf(line, "%lx-%lx", &begin, &end) == 2 && begin <= expected && expected < end)
            found = std::strstr(line, "standin-gpu") != nullptr;
    }
    std::fclose(maps);
    return found;
}

ibv_mr* refuse(int error_number) {
    errno = error_number;
    return nullptr;
}

// Calls the next library's function: the real one.
ibv_mr* really(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t iova, unsigned access) {
    using Register = ibv_mr* (*)(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned);
    static auto const next = reinterpret_cast<Register>(::dlsym(RTLD_NEXT, "ibv_reg_mr_iova2"));
    return next(pd, address, bytes, iova, access);
}

// With "misplaced", a write to `address` by the returned key lands one page behind it.
ibv_mr* register_gpus(ibv_pd* pd, std::uint64_t address, std::size_t bytes, unsigned access) {
    auto const shift = nic() == "misplaced" ? page_bytes : 0;
    auto* const place = reinterpret_cast<void*>(address + shift);
    if (nic() == "leaky") really(pd, place, page_bytes, address, access);
    return really(pd, place, bytes - shift, address, access);
}

}  // namespace

extern "C" {

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t iova,
                         unsigned access) {
    if (!is_gpus(address)) return really(pd, address, bytes, iova, access);
    if (!takes("peermem")) return refuse(EFAULT);
    return register_gpus(pd, iova, bytes, access);
}

#undef ibv_reg_mr
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t bytes, int access) {
    return ibv_reg_mr_iova2(pd, address, bytes, reinterpret_cast<std::uintptr_t>(address),
                            static_cast<unsigned>(access));
}

// The kernel maps the descriptor's bytes from the offset on, whatever the value of `iova`: here
// they must be those of the GPU's memory at `iova`.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t bytes, std::uint64_t iova,
                          int descriptor, int access) {
    if (nic() == "chipset") return refuse(kernel_enotsupp);
    if (!takes("dma_buf")) return refuse(EOPNOTSUPP);
    if (::lseek(descriptor, 0, SEEK_END) < 0) return refuse(EBADF);
    if (!is_gpus(reinterpret_cast<void const*>(iova))) return refuse(EINVAL);
    if (!vfmgr::standin::holds(descriptor, offset, bytes, iova)) return refuse(EINVAL);
    return register_gpus(pd, iova, bytes, static_cast<unsigned>(access));
}

}  // extern "C"
