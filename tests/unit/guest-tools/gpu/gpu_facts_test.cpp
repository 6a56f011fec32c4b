// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_facts.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "guest-tools/gpu/gpu_text.hpp"
#include "tests/unit/guest-tools/gpu/standin_gpu.hpp"
#include "tests/unit/repository.hpp"
#include "vfmgr/machine/bundle.hpp"

namespace vfmgr::guest::gpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

checks::Facts bundle(std::string const& name) {
    std::ostringstream text;
    text
        << std::ifstream(test::repository() / ("tests/fixtures/bundles/" + name + ".json")).rdbuf();
    return checks::from_bundle(text.str()).value();
}

// Puts the stand-in's GPU in the place of the bundle's first.
GpuInfo joined(StandinGpu const& standin, checks::Facts const& facts) {
    auto const machine = checks::read_machine(facts);
    auto gpu = standin.gpu;
    for (auto const& device : machine.pci().value())
        if (checks::is_nvidia_gpu(device)) {
            gpu.pci = device.address;
            break;
        }
    return join(gpu, machine);
}

TEST(GpuFacts, AreThoseOfTheAttributes) {
    StandinGpu const standin;
    EXPECT_EQ(to_string(standin.gpu.pci), "0000:1b:00.0");
    auto const info = joined(standin, bundle("gpu-guest-without-nic"));
    EXPECT_EQ(info.route, GpuRoute::dma_buf);
    EXPECT_EQ(info.compute_capability, "9.0");
    EXPECT_EQ(info.cuda_version, "13.0");
    EXPECT_EQ(info.gpu_direct_rdma, true);
    EXPECT_EQ(info.writes_ordering, WritesOrdering::owner);
    EXPECT_EQ(info.flush_writes, true);
    EXPECT_EQ(info.driver_flavour, DriverFlavour::open);
    EXPECT_TRUE(info.driver_version);
    EXPECT_EQ(info.bar1_bytes, std::uint64_t{256} << 30U);
    EXPECT_FALSE(info.nearest_nic);
    EXPECT_EQ(info.remedy, "");
    EXPECT_THAT(describe(std::vector{info}),
                AllOf(HasSubstr("dma_buf"), HasSubstr("256 GiB: all of its memory"),
                      HasSubstr("in order for this GPU, a flush is offered"),
                      HasSubstr("none with RDMA in hardware")));
}

// A limit of the product: reported politely, and not decided by any name.
TEST(GpuFacts, OfAGeForceAreNoFault) {
    auto const info = joined(StandinGpu("geforce"), bundle("gpu-guest-without-nic"));
    EXPECT_EQ(info.route, GpuRoute::not_offered);
    EXPECT_THAT(info.detail, AllOf(HasSubstr("GPU_DIRECT_RDMA_SUPPORTED is 0"),
                                   HasSubstr("DMA_BUF_SUPPORTED is 0"), HasSubstr("not a fault")));
    EXPECT_THAT(info.remedy, IsEmpty());
    StandinGpu renamed("geforce");
    renamed.gpu.name = "NVIDIA H200";
    EXPECT_EQ(joined(renamed, bundle("gpu-guest-without-nic")).route, GpuRoute::not_offered);
    StandinGpu other;
    other.gpu.name = "NVIDIA GeForce RTX 3090";
    EXPECT_EQ(joined(other, bundle("gpu-guest-without-nic")).route, GpuRoute::dma_buf);
}

TEST(GpuFacts, WithoutDmaBufSayWhatOfPeermemLacks) {
    StandinGpu const standin("peermem");
    auto const loaded = joined(standin, bundle("gpu-host-ofed"));
    EXPECT_EQ(loaded.route, GpuRoute::peermem);
    EXPECT_TRUE(loaded.peermem_loaded);
    EXPECT_TRUE(loaded.nearest_nic);
    auto const wrong = joined(standin, bundle("gpu-host-wrong-order"));
    EXPECT_EQ(wrong.route, GpuRoute::none);
    EXPECT_FALSE(wrong.peermem_loaded);
    EXPECT_THAT(wrong.remedy, Not(IsEmpty()));
    EXPECT_THAT(wrong.peermem, HasSubstr("nvidia-peermem can't be loaded; "));
}

TEST(GpuFacts, OfAnOldDriverAreAbsentAndNotZero) {
    StandinGpu const standin("h200", STANDIN_CUDA_OLD);
    EXPECT_FALSE(standin.gpu.dma_buf);
    EXPECT_FALSE(standin.gpu.gpu_direct_rdma);
    EXPECT_EQ(standin.gpu.vmm_gpu_direct_rdma, true);
    EXPECT_FALSE(standin.cuda->calls.cuMemGetHandleForAddressRange);
    auto const info = joined(standin, bundle("gpu-guest-without-nic"));
    EXPECT_THAT(info.detail, HasSubstr("unknown to this driver"));
    EXPECT_FALSE(info.writes_ordering);
    EXPECT_THAT(info.remedy, HasSubstr("newer"));
    EXPECT_NE(info.route, GpuRoute::not_offered) << "an old driver knows nothing of it";
}

TEST(GpuFacts, NameTheLibraryThatIsMissingAndItsRemedy) {
    auto const none = Cuda::open("libcuda-of-nobody.so.1");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().problem, Problem::not_found);
    EXPECT_THAT(none.error().detail, HasSubstr("libcuda-of-nobody.so.1 can't be opened"));
    EXPECT_THAT(none.error().remedy, AllOf(HasSubstr("libcuda1"), HasSubstr("container")));
    ASSERT_EQ(none.error().causes.size(), 1U);
    EXPECT_THAT(none.error().causes[0].text, HasSubstr("No such file"));
}

TEST(GpuFacts, NameAnotherLibraryOfTheName) {
    auto const other = Cuda::open("libc.so.6");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().problem, Problem::unsupported);
    EXPECT_THAT(other.error().detail, HasSubstr("libc.so.6 has no cuInit"));
}

TEST(GpuFacts, WithoutADeviceSaySo) {
    auto const none = open_standin("none");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().problem, Problem::not_found);
    EXPECT_EQ(none.error().causes.at(0).code, "CUDA_ERROR_NO_DEVICE 100");
    EXPECT_THAT(none.error().remedy, HasSubstr("vf-guest doctor"));
}

TEST(ChooseGpu, TakesTheNearestThatOffersIt) {
    auto const gpu = [](char const* pci, GpuRoute route, std::optional<PciDistance> distance) {
        GpuInfo info;
        info.pci = PciAddress::parse(pci).value();
        info.route = route;
        info.distance = distance;
        return info;
    };
    std::vector<GpuInfo> const gpus{gpu("0000:01:00.0", GpuRoute::not_offered, PciDistance::pix),
                                    gpu("0000:02:00.0", GpuRoute::dma_buf, PciDistance::sys),
                                    gpu("0000:03:00.0", GpuRoute::dma_buf, PciDistance::node),
                                    gpu("0000:04:00.0", GpuRoute::dma_buf, std::nullopt)};
    EXPECT_EQ(choose_gpu(gpus), 2U);
    EXPECT_EQ(choose_gpu(gpus, "0000:01:00.0"), 0U);
    auto const wrong = choose_gpu(gpus, "0000:09:00.0");
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().problem, Problem::not_found);
    EXPECT_THAT(wrong.error().remedy, HasSubstr("0000:01:00.0, 0000:02:00.0"));
    EXPECT_FALSE(choose_gpu({}));
}

// Eight NICs, and two GPUs that are put beside the first and the fourth: which of the two is near
// depends on the NIC.
TEST(GpuFacts, AsSeenFromANic) {
    StandinGpu const standin;
    auto facts = bundle("h100-class");
    for (auto const* const path :
         {"pci0000:1a/0000:16:01.0/0000:1b:00.0", "pci0000:5e/0000:5a:01.0/0000:5f:00.0"}) {
        auto const address = std::string(path).substr(std::string(path).rfind('/') + 1);
        facts.folders["/sys/bus/pci/devices"].names.push_back(address);
        facts.links["/sys/bus/pci/devices/" + address] = {"../../../devices/" + std::string(path)};
    }
    auto const machine = checks::read_machine(facts);
    std::vector<GpuInfo> gpus;
    for (auto const* const address : {"0000:1b:00.0", "0000:5f:00.0"}) {
        auto one = standin.gpu;
        one.pci = PciAddress::parse(address).value();
        gpus.push_back(join(one, machine));
    }
    auto const nearest = [&](char const* netdev) {
        auto seen = gpus;
        measure_from(machine, netdev, seen);
        auto const& chosen = seen[choose_gpu(seen).value()];
        return to_string(*chosen.nearest_nic) + " " + to_string(chosen.pci);
    };
    EXPECT_EQ(nearest("ibp0"), "0000:1a:00.0 0000:1b:00.0");
    EXPECT_EQ(nearest("ibp3"), "0000:5e:00.0 0000:5f:00.0");
    auto untouched = gpus;
    measure_from(machine, "lo", untouched);
    EXPECT_EQ(untouched, gpus);
}

}  // namespace
}  // namespace vfmgr::guest::gpu
