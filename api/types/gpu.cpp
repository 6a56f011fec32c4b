// SPDX-License-Identifier: Apache-2.0
#include "api/types/gpu.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<GpuInfo> V>
void fields(F& f, V& gpu) {
    f.value("pci", gpu.pci);
    f.value("name", gpu.name);
    f.value("compute_capability", gpu.compute_capability);
    f.value("memory_bytes", gpu.memory_bytes);
    f.nullable("bar1_bytes", gpu.bar1_bytes);
    f.value("cuda_version", gpu.cuda_version);
    f.nullable("driver_version", gpu.driver_version);
    f.nullable("driver_flavour", gpu.driver_flavour);
    f.nullable("gpu_direct_rdma", gpu.gpu_direct_rdma);
    f.nullable("dma_buf", gpu.dma_buf);
    f.nullable("vmm_gpu_direct_rdma", gpu.vmm_gpu_direct_rdma);
    f.nullable("flush_writes", gpu.flush_writes);
    f.nullable("writes_ordering", gpu.writes_ordering);
    f.value("peermem_loaded", gpu.peermem_loaded);
    f.value("peermem", gpu.peermem);
    f.nullable("nearest_nic", gpu.nearest_nic);
    f.nullable("distance", gpu.distance);
    f.value("route", gpu.route);
    f.value("detail", gpu.detail);
    f.value("remedy", gpu.remedy);
}

template <class F, Of<GpuTestReport> V>
void fields(F& f, V& report) {
    f.value("gpu", report.gpu);
    f.value("verdict", report.verdict);
    f.value("tests", report.tests);
    f.value("started_at", report.started_at);
    f.value("finished_at", report.finished_at);
}

template struct Json<GpuInfo>;
template struct Json<GpuTestReport>;

}  // namespace vfmgr
