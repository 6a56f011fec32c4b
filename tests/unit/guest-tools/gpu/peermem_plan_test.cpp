// SPDX-License-Identifier: Apache-2.0
// Decides what to load for GPU memory, and everything against it, on the whole machines of
// tests/fixtures/bundles with something changed.
#include "guest-tools/gpu/peermem_plan.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "guest-tools/gpu/at_boot.hpp"
#include "tests/unit/repository.hpp"
#include "vfmgr/machine/bundle.hpp"

namespace vfmgr::guest::gpu {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

std::string const modversions =
    "modprobe --dump-modversions /lib/modules/5.15.0-126-generic/updates/dkms/nvidia-peermem.ko";

json machine_of(std::string const& name) {
    std::ifstream in(test::repository() / ("tests/fixtures/bundles/" + name + ".json"));
    return json::parse(in);
}

class Machine {
  public:
    explicit Machine(std::string const& name) : document_(machine_of(name)) {}

    Machine& with(json const& patch) {
        document_.merge_patch(patch);
        return *this;
    }
    // As after rmmod.
    Machine& without_module(std::string const& module) {
        std::istringstream lines(document_["files"]["/proc/modules"].get<std::string>());
        std::string kept;
        for (std::string line; std::getline(lines, line);)
            if (!line.starts_with(module + " ")) kept += line + "\n";
        auto& folder = document_["folders"]["/sys/module"];
        for (std::size_t i = 0; i < folder.size(); ++i)
            if (folder[i] == module) folder.erase(i--);
        return with({{"files", {{"/proc/modules", kept}}}});
    }
    Machine& with_module(std::string const& module) {
        auto& modules = document_["files"]["/proc/modules"];
        modules = modules.get<std::string>() + module + " 4096 0 - Live 0x0\n";
        return *this;
    }
    [[nodiscard]] checks::Facts facts() const {
        return checks::from_bundle(document_.dump()).value();
    }
    [[nodiscard]] PeermemPlan plan(PeermemOptions options = {}) const {
        auto const all = facts();
        return peermem_plan(checks::read_machine(all), options);
    }

  private:
    json document_;
};

// A host with OFED before NVIDIA's driver; all is well but the module is not loaded yet.
Machine ready() {
    return Machine("gpu-host-ofed").without_module("nvidia_peermem");
}

json with_dma_buf() {
    return {{"files",
             {{"/proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release "
               "Build\n"}}}};
}

auto hindrance(std::string const& rule, std::string const& detail) {
    return Contains(AllOf(Field(&Finding::rule, rule), Field(&Finding::detail, HasSubstr(detail))));
}

std::vector<std::string> commands_of(PeermemPlan const& plan) {
    std::vector<std::string> commands;
    for (auto const& one : plan.hindrances)
        if (one.remedy)
            commands.insert(commands.end(), one.remedy->commands.begin(),
                            one.remedy->commands.end());
    return commands;
}

auto awaits(std::string const& what, std::string const& seen) {
    return ElementsAre(
        AllOf(Field(&Awaited::what, what), Field(&Awaited::observed, HasSubstr(seen))));
}

TEST(PeermemPlan, HasNothingToDoWhereItIsLoaded) {
    auto const plan = Machine("gpu-host-ofed").plan();
    EXPECT_EQ(plan.next, PeermemNext::nothing);
    EXPECT_TRUE(plan.loaded);
}

TEST(PeermemPlan, LoadsWhereAllIsThere) {
    auto const plan = ready().plan();
    EXPECT_EQ(plan.next, PeermemNext::load) << plan.reason;
    EXPECT_EQ(plan.module, "nvidia-peermem");
    EXPECT_THAT(plan.hindrances, IsEmpty());
    EXPECT_THAT(plan.remarks, ElementsAre(HasSubstr("are the proprietary ones")))
        << "DMA-BUF is told to be the way to prefer";
}

TEST(PeermemPlan, PrefersDmaBufAndLoadsOnlyWhenAskedAllTheSame) {
    auto machine = ready().with(with_dma_buf());
    EXPECT_EQ(machine.plan().next, PeermemNext::nothing);
    EXPECT_THAT(machine.plan().reason, HasSubstr("DMA-BUF can be used"));
    EXPECT_EQ(machine.plan({.despite_dma_buf = true}).next, PeermemNext::load);
}

TEST(PeermemPlan, HasNothingToDoWithoutGpuOrNic) {
    for (auto const* name : {"small-intel", "guest-vf", "cerberus"}) {
        auto const plan = Machine(name).plan();
        EXPECT_EQ(plan.next, PeermemNext::nothing) << name << plan.reason;
        EXPECT_FALSE(plan.loaded) << name;
    }
}

TEST(PeermemPlan, WaitsForTheDriver) {
    auto machine = ready().without_module("nvidia").with(
        {{"files", {{"/proc/driver/nvidia/version", nullptr}}},
         {"links", {{"/sys/bus/pci/devices/0000:18:00.0/driver", nullptr}}}});
    auto const plan = machine.plan();
    EXPECT_EQ(plan.next, PeermemNext::wait);
    EXPECT_THAT(plan.awaited, awaits("NVIDIA's driver", "installed but not loaded"));
}

TEST(PeermemPlan, WaitsForADriverThatHasNoGpuYet) {
    auto const plan =
        ready().with({{"links", {{"/sys/bus/pci/devices/0000:18:00.0/driver", nullptr}}}}).plan();
    EXPECT_EQ(plan.next, PeermemNext::wait);
    EXPECT_THAT(plan.awaited, awaits("NVIDIA's driver", "has no GPU"));
}

TEST(PeermemPlan, WaitsForOfed) {
    auto const not_loaded = ready().without_module("mlx5_core").plan();
    EXPECT_EQ(not_loaded.next, PeermemNext::wait);
    EXPECT_THAT(not_loaded.awaited, awaits("OFED", "mlx5_core is not loaded"));
    // openibd has not replaced the kernel's own modules yet.
    auto const inbox =
        ready().with({{"files", {{"/proc/kallsyms", "ffffffffc0a1b2c0 T ib_dma [ib_core]\n"}}}});
    EXPECT_EQ(inbox.plan().next, PeermemNext::wait);
    EXPECT_THAT(inbox.plan().awaited, awaits("OFED", "is the kernel's own"));
}

TEST(PeermemPlan, WaitsForTheDriverThatIsBuiltAtBoot) {
    auto const plan =
        ready()
            .without_module("nvidia")
            .with({{"files",
                    {{"/usr/sbin/akmods", "#!/b"},
                     {"/proc/driver/nvidia/version", nullptr},
                     {"/lib/modules/5.15.0-126-generic/modules.dep",
                      "updates/dkms/ib_core.ko:\nupdates/dkms/mlx5_core.ko:\n"}}},
                   {"links", {{"/sys/bus/pci/devices/0000:18:00.0/driver", nullptr}}}})
            .plan();
    EXPECT_EQ(plan.next, PeermemNext::wait) << plan.reason;
    EXPECT_THAT(plan.awaited, awaits("NVIDIA's driver", "akmods has not built nvidia"));
}

TEST(PeermemPlan, DoesNotWaitForWhatNobodyInstalls) {
    auto const plan = ready()
                          .with({{"files",
                                  {{"/proc/kallsyms", ""},
                                   {"/lib/modules/5.15.0-126-generic/modules.symbols", nullptr}}}})
                          .plan();
    EXPECT_EQ(plan.next, PeermemNext::impossible);
    EXPECT_THAT(plan.hindrances, hindrance("gpu.peermem", "has no ib_register_peer_memory_client"));
}

TEST(PeermemPlan, NamesAModuleForAnotherKernel) {
    auto const plan =
        ready()
            .with({{"files",
                    {{"/lib/modules/5.15.0-126-generic/modules.dep",
                      "updates/dkms/ib_core.ko:\nupdates/dkms/nvidia.ko:\n"}}},
                   {"folders", {{"/var/lib/dkms/nvidia/550.144.03", {"5.15.0-125-generic"}}}}})
            .plan();
    EXPECT_EQ(plan.next, PeermemNext::impossible);
    EXPECT_THAT(plan.hindrances, hindrance("gpu.peermem",
                                           "no nvidia-peermem for kernel 5.15.0-126-generic; it is "
                                           "built for 5.15.0-125-generic"));
    EXPECT_THAT(commands_of(plan), ElementsAre("dpkg-reconfigure nvidia-dkms-550"));
}

TEST(PeermemPlan, NamesTheWrongOrderOfInstallation) {
    auto const other = Machine("gpu-host-wrong-order").plan();
    EXPECT_EQ(other.next, PeermemNext::impossible);
    EXPECT_THAT(other.hindrances, hindrance("gpu.install_order", "against another RDMA stack"));
    auto const without =
        Machine("gpu-host-wrong-order")
            .with({{"commands", {{modversions, {{"out", "0x7b1e4c90\tmodule_layout\n"}}}}}})
            .plan();
    EXPECT_THAT(without.hindrances, hindrance("gpu.install_order", "only returns EINVAL"));
    EXPECT_THAT(commands_of(without), ElementsAre("dpkg-reconfigure nvidia-dkms-550"));
}

TEST(PeermemPlan, NamesTheOldModuleInTheWay) {
    auto const plan = ready().with_module("nv_peer_mem").plan();
    EXPECT_EQ(plan.next, PeermemNext::impossible);
    EXPECT_THAT(plan.hindrances,
                hindrance("gpu.nv_peer_mem", "the old nv_peer_mem is still present"));
    EXPECT_THAT(commands_of(plan), Contains("rmmod nv_peer_mem"));
}

TEST(PeermemPlan, LeavesTheOldModuleToAnOldDriver) {
    auto const plan = ready()
                          .with_module("nv_peer_mem")
                          .with({{"files",
                                  {{"/proc/driver/nvidia/version",
                                    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  450.80.02  "
                                    "Wed\n"}}}})
                          .plan();
    EXPECT_EQ(plan.next, PeermemNext::nothing) << plan.reason;
}

TEST(PeermemPlan, NamesAllThatTheKernelIsSetTo) {
    auto const plan =
        ready()
            .with({{"files",
                    {{"/proc/sys/kernel/modules_disabled", "1\n"},
                     {"/proc/cmdline", "ro module_blacklist=nouveau,nvidia_peermem quiet\n"},
                     {"/etc/modprobe.d/local.conf", "install  nvidia-peermem /bin/false\n"},
                     {"/sys/firmware/efi/efivars/"
                      "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
                      {{"hex", "0600000001"}}},
                     {"/dev/kmsg",
                      "3,9,9100000,-;nvidia_peermem: Loading of module with unavailable key is "
                      "rejected\n"}}}})
            .plan();
    EXPECT_EQ(plan.next, PeermemNext::impossible);
    EXPECT_THAT(plan.hindrances, hindrance("gpu.peermem", "accepts no more modules"));
    EXPECT_THAT(plan.hindrances, hindrance("gpu.peermem", "module_blacklist=nouveau,nvidia_peer"));
    EXPECT_THAT(plan.hindrances, hindrance("gpu.peermem", "/etc/modprobe.d/local.conf makes"));
    EXPECT_THAT(plan.hindrances, hindrance("stack.secure_boot", "refuses a module's signature"));
}

TEST(PeermemPlan, IsNotMisledByARuleThatLoadsIt) {
    auto const plan = ready()
                          .with({{"files",
                                  {{"/etc/modprobe.d/local.conf",
                                    "install nvidia-peermem /sbin/modprobe --ignore-install "
                                    "nvidia-peermem\n# install nvidia-peermem /bin/false\n"
                                    "install nvidia-peermem-tests /bin/false\n"}}}})
                          .plan();
    EXPECT_EQ(plan.next, PeermemNext::load);
}

TEST(PeermemPlan, SaysOfAGeForceThatOnlyCudaTells) {
    auto const plan =
        ready()
            .with({{"files", {{"/sys/bus/pci/devices/0000:18:00.0/class", "0x030000\n"}}}})
            .plan();
    EXPECT_EQ(plan.next, PeermemNext::load);
    EXPECT_THAT(
        plan.remarks,
        Contains(HasSubstr(
            "only CUDA reports whether this GPU offers GPUDirect at all (a GeForce does not)")));
}

TEST(PeermemPlan, LeavesTheOperatorsDriverToTheOperator) {
    auto machine = Machine("gpu-guest-k8s");
    EXPECT_EQ(machine.plan().next, PeermemNext::wait);
    EXPECT_THAT(machine.plan().awaited, awaits("the GPU operator", "driver.rdma.enabled=true"));
    auto const before =
        Machine("gpu-guest-k8s")
            .without_module("nvidia")
            .with({{"files", {{"/proc/driver/nvidia/version", nullptr}}},
                   {"links", {{"/sys/bus/pci/devices/0000:02:00.0/driver", nullptr}}}})
            .plan();
    EXPECT_EQ(before.next, PeermemNext::wait);
    EXPECT_THAT(before.awaited, awaits("NVIDIA's driver", "the GPU operator's container"));
    EXPECT_TRUE(machine.with_module("nvidia_peermem").plan().loaded) << "by the operator";
}

TEST(PeermemPlan, NamesAnotherContainersDriver) {
    auto const plan =
        Machine("gpu-guest-k8s")
            .with({{"folders", {{"/var/lib/kubelet", nullptr}, {"/etc/kubernetes", nullptr}}}})
            .plan();
    EXPECT_EQ(plan.next, PeermemNext::impossible);
    EXPECT_THAT(plan.hindrances, hindrance("gpu.peermem", "belongs to a container"));
    EXPECT_THAT(commands_of(plan), ElementsAre(HasSubstr("chroot /run/nvidia/driver")));
}

TEST(PeermemPlan, NamesADriverThatNobodyInstalled) {
    json const without{{"files",
                        {{"/proc/driver/nvidia/version", nullptr},
                         {"/lib/modules/5.15.0-126-generic/modules.dep",
                          "updates/dkms/ib_core.ko:\nupdates/dkms/mlx5_core.ko:\n"}}},
                       {"links", {{"/sys/bus/pci/devices/0000:18:00.0/driver", nullptr}}}};
    for (auto const* kind : {"host", "guest"}) {
        auto machine = ready().without_module("nvidia").with(without).with({{"machine", kind}});
        EXPECT_EQ(machine.plan().next, PeermemNext::impossible) << kind;
        EXPECT_THAT(machine.plan().hindrances, hindrance("gpu.driver", "not installed")) << kind;
    }
}

TEST(PeermemPlan, TakesP2pOnAnIntegratedGpu) {
    json const integrated{
        {"files",
         {{"/sys/firmware/devicetree/base/compatible", "nvidia,tegra234"},
          {"/sys/bus/pci/devices/0000:18:00.0/vendor", nullptr},
          {"/sys/bus/pci/devices/0000:18:00.0/class", nullptr},
          {"/lib/modules/5.15.0-126-generic/modules.dep", "updates/nvidia-p2p.ko:\n"}}}};
    auto machine = ready().with(integrated);
    EXPECT_EQ(machine.plan().next, PeermemNext::load) << machine.plan().reason;
    EXPECT_EQ(machine.plan().module, "nvidia-p2p");
    EXPECT_TRUE(Machine(machine).with_module("nvidia_p2p").plan().loaded);
    machine.with({{"files", {{"/lib/modules/5.15.0-126-generic/modules.dep", ""}}}});
    EXPECT_EQ(machine.plan().next, PeermemNext::impossible);
    EXPECT_THAT(machine.plan().hindrances, hindrance("gpu.igpu", "has no nvidia-p2p"));
}

// --- at boot ---

BootBy at_boot(Machine const& machine) {
    auto const facts = machine.facts();
    return choose_at_boot(checks::read_machine(facts), "nvidia-peermem").by;
}

TEST(AtBoot, WaitsWhereModulesLoadComesTooEarly) {
    json const nobody{{"files", {{"/etc/modules-load.d/nvidia-peermem.conf", nullptr}}}};
    auto machine = Machine("gpu-host-ofed").with(nobody);
    EXPECT_EQ(at_boot(machine), BootBy::unit) << "openibd replaces the stack";
    auto const facts = machine.facts();
    auto with_units = checks::read_machine(facts);
    using Units = std::map<std::string, checks::Unit, std::less<>>;
    with_units.units = checks::Known<Units>(Units());
    EXPECT_EQ(choose_at_boot(with_units, "nvidia-peermem").by, BootBy::file);
    machine.with({{"files", {{"/usr/sbin/akmods", "#!/b"}}}});
    EXPECT_EQ(at_boot(machine), BootBy::unit);
}

TEST(AtBoot, LeavesItToWhoeverDoesItAlready) {
    EXPECT_EQ(at_boot(Machine("gpu-host-ofed")), BootBy::other);
    EXPECT_EQ(at_boot(Machine("gpu-guest-k8s")), BootBy::other);
    EXPECT_EQ(at_boot(Machine("gpu-guest-k8s").with_module("nvidia_peermem")), BootBy::other);
}

}  // namespace
}  // namespace vfmgr::guest::gpu
