// SPDX-License-Identifier: Apache-2.0
// A host of fakes built from a JSON document, as vfmgrd_on_fakes uses it, and the changes that
// happen to it while the daemon runs. Owned by main(); any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tests/contract/kept_host.hpp"
#include "tests/fakes/fake_hypervisor.hpp"
#include "tests/fakes/fake_kernel.hpp"

namespace vfmgr::fakes {

// The result of the check that a VM's address is its VF's: it is the VF's, it is another machine's,
// no machine answers, the kernel refuses the check, the check never returns, the check throws.
enum class Peers { right, wrong, silent, refused, hanging, broken };

struct HostVm;  // of the document

// {"pfs": [{"model": "igb", "pci": "0000:01:00.0", "ifname": "enp1s0", "total_vfs": 7,
//           "rdma_device": "mlx5_0"}],                 // model, pci and ifname are required
//  "vms": [{"name": "vm1", "uuid": "1111…", "runs": true, "vsock": true, "free_pcie_ports": 2,
//           "interfaces": [as GET /v1/vms shows them]}],
//  "firmware": [a card as GET /v1/host/firmware shows it, without pending, in_use and tries],
//  "network": {"netdevs": {…}, "rdma": {…}, …},        // as in the store of views
//  "gids": ["192.168.100.1"],                          // addresses of the process's RDMA device
//  "verdict": a verification as the API shows it,      // what each run ends with, at once; its ids
//                                                      // and times count nothing; no VM connects
//  "step_milliseconds": 200}                           // duration of each kernel step
// Every member may be absent.
class FakeHost final {
  public:
    FakeHost() { kernel_.keeps_steps = hypervisor_.keeps_steps = false; }
    // Returns the document's violations, if it has any.
    [[nodiscard]] Result<void> load(nlohmann::json const& document);
    // Keeps the host in files from now on, as kept_host.hpp says.
    [[nodiscard]] Result<void> keep(std::filesystem::path file) {
        return kept_.open(std::move(file));
    }
    // Applies one change to the host; the line's only member names it:
    // {"define_vm": a VM as in the document} {"undefine_vm": UUID}
    // {"start_vm": UUID} {"stop_vm": UUID} {"hold": {"pci", "pid", "comm"}} {"release": {"pci",
    // "pid"}} {"stuck": {"pf", "why"}} {"unstick": PF} {"libvirt": "down" or "up"}
    // {"guestd": "down" or "up"}: whether vfmgrd reaches vfmgr-guestd
    // {"detach": "works", "not_done" or "times_out"} {"step_milliseconds": 200}; 0 also lets the
    // steps that wait continue
    // {"take_out": PF} removes its card; {"put_in": {"pf", "to", "total_vfs"}} inserts the card
    // that the document has at `pf`, with that many VFs, or as many as before
    // {"refuse_step": "reset_vf"}, or "read_firmware", until {"refuse_step": ""}
    // {"traffic": {"pf", "index", "counters"}}: what the VF's driver has counted so far
    // {"peers": "wrong"}, or another of Peers, until {"peers": "right"}
    // {"verdict": …}: what runs end with from now on, if the document has a verdict
    [[nodiscard]] Result<void> happen(std::string_view line);

    [[nodiscard]] Kernel& kernel() { return timed_kernel_; }
    [[nodiscard]] Hypervisor& hypervisor() { return timed_hypervisor_; }
    [[nodiscard]] bool guestd_down() const { return guestd_down_; }
    void on_guestd_down(std::function<void()> end) { on_guestd_down_ = std::move(end); }
    // What runs end with; absent: what their guests prove.
    [[nodiscard]] std::optional<Verification> verdict();
    // The check of a VM's address before a session opens.
    [[nodiscard]] Result<void> check_peer();

  private:
    [[nodiscard]] Result<void> define(HostVm const& vm);

    // Adds to the fake what a test may change while threads run: the time of an observation, the
    // duration of a step.
    class TimedKernel final : public Kernel {
      public:
        explicit TimedKernel(FakeHost& host) : host_(host) {}
        Result<KernelView> observe(KernelScope const& scope) override;
        Result<Observed> perform(KernelStep const& step, Deadline deadline) override;
        Result<std::vector<FirmwareCard>> read_firmware(
            std::optional<PciAddress> const& function) override;
        Result<std::vector<PfTraffic>> read_traffic(std::optional<PciAddress> const& pf) override;

      private:
        FakeHost& host_;
    };
    class TimedHypervisor final : public Hypervisor {
      public:
        explicit TimedHypervisor(FakeHost& host) : host_(host) {}
        Result<HypervisorView> observe(HypervisorScope const& scope) override;
        Result<Observed> perform(HypervisorStep const& step, Deadline deadline) override;
        Result<void> settle(std::string const& vm_uuid, Deadline deadline) override;

      private:
        FakeHost& host_;
    };

    FakeKernel kernel_;
    std::map<PciAddress, PfState> cards_;  // as in the document
    FakeHypervisor hypervisor_{kernel_};
    KeptHost kept_{kernel_, hypervisor_};
    TimedKernel timed_kernel_{*this};
    TimedHypervisor timed_hypervisor_{*this};
    std::atomic<bool> libvirt_down_ = false, guestd_down_ = false;
    std::function<void()> on_guestd_down_;  // set before anything happens
    std::mutex mutex_;                      // guards the members below, and hypervisor_.detach
    std::condition_variable quick_;         // something happened
    std::chrono::milliseconds step_time_{0};
    std::string refused_step_;
    Peers peers_ = Peers::right;
    std::optional<Verification> verdict_;
};

}  // namespace vfmgr::fakes
