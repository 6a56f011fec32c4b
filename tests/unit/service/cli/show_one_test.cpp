// SPDX-License-Identifier: Apache-2.0
// One VF, one VM and one RDMA link, as vfctl shows them, and a PF that is not managed any more.
#include <gmock/gmock.h>

#include "api/types/event.hpp"
#include "api/types/rdma.hpp"
#include "api/types/vm_info.hpp"
#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using test::Api;
using test::vfctl;
using testing::HasSubstr;
using testing::Not;

std::string const pf_path = "/v1/pfs/0000:01:00.0";
std::string const uuid = "6f5b2f1e-6c0e-4f2a-9a55-0c3f0f0f7c11";

PciAddress pci(std::string const& text) {
    return PciAddress::parse(text).value();
}

VfView quarantined_vf() {
    VfView view;
    view.pf = pci("0000:01:00.0");
    view.state = VfStatus::quarantined;
    view.vf.index = 3;
    view.vf.pci = pci("0000:01:10.6");
    view.vf.driver = "vfio-pci";
    view.vf.iommu_group = 17;
    view.vf.holders = {{1812, "qemu-system-x86"}};
    view.vf.settings.trust = true;
    view.vf.settings.vlan = Vlan{100, 3};
    view.quarantine = {"it did not come back", {"a process holds it open"}, "db1", {}};
    return view;
}

void answer_vf(Api& api) {
    auto pf = test::pf("0000:01:00.0", "ens1");
    pf.vfs = {quarantined_vf(), quarantined_vf()};
    pf.vfs[0].vf.index = 0;
    api.on("GET " + pf_path, 200, pf);
    api.on("GET /v1/pfs", 200, test::list<PfView>({pf}));
    api.on("GET " + pf_path + "/vfs/3", 200, quarantined_vf());
    Verification run;
    run.run = "r7";
    run.verdict = Verdict::fail;
    api.on("GET " + pf_path + "/vfs/3/verifications limit=1", 200,
           {{"items", {run}}, {"next", "earlier"}});
    std::vector<Event> history(5);
    for (auto& event : history)
        event.number = 107 - static_cast<std::uint64_t>(&event - &history[0]);
    api.on("GET " + pf_path + "/vfs/3/history limit=5", 200,
           {{"items", history}, {"next", "earlier"}});
}

TEST(VfctlVfShow, HasEverythingThatIsKnownOfTheVf) {
    Api api;
    answer_vf(api);
    auto const page = vfctl(api, {"vf", "show", "ens1/3"});
    EXPECT_EQ(page.code, 0) << page.err;
    for (auto const* const line :
         {"VF:                 0000:01:00.0/3 (0000:01:10.6)\n", "PF's ifname:        ens1\n",
          "state:              quarantined\n", "driver:             vfio-pci\n",
          "IOMMU group:        17\n", "held by:            qemu-system-x86 (1812)\n",
          "last verification:  fail, 1970-01-01T00:00:00.000Z, run r7\n",
          "after VM db1: it did not come back\n", "  - a process holds it open\n",
          "remedy: vfctl vf lift-quarantine 0000:01:00.0/3\n", "vlan     100:3\n",
          "trust    yes\n"})
        EXPECT_THAT(page.out, HasSubstr(line));
    EXPECT_THAT(page.out, HasSubstr("\n107 "));
    EXPECT_THAT(page.out, HasSubstr("\n103 ")) << "the latest five; vf history has all";
    EXPECT_EQ(vfctl(api, {"vf", "show", "ens1/3", "-o", "name"}).out, "0000:01:00.0/3\n");
    EXPECT_EQ(vfctl(api, {"vf", "show", "ens1/3", "-j"}).out,
              nlohmann::json(quarantined_vf()).dump() + "\n");
    EXPECT_EQ(vfctl(api, {"vf", "show", "ens1/4"}).code, 3);
}

TEST(VfctlVmShow, HasItsVfsAndWhatIsNotOurs) {
    Api api;
    VmInfo vm;
    vm.uuid = uuid;
    vm.name = "db1";
    vm.state = VmState::running;
    vm.has_vsock = true;
    vm.vsock_cid = 3;
    vm.live = {{pci("0000:01:10.4"), "ua-vfmgr-3f9c2b1d"}, {pci("0000:05:00.0"), "hostdev0"}};
    vm.config = {{pci("0000:01:10.4"), "ua-vfmgr-3f9c2b1d"}, {pci("0000:06:00.0"), {}}};
    vm.interfaces = {{MacAddress{{0x52, 0x54, 0, 0, 0, 1}}, "bridge", {}},
                     {MacAddress{{0x52, 0x54, 0, 0, 0, 2}}, "hostdev", pci("0000:05:00.0"), true}};
    api.on("GET /v1/vms", 200, test::list<VmInfo>({vm}));
    api.on("GET /v1/vms/" + uuid, 200, vm);
    auto attached = test::attachment("3f9c2b1d", "db1", uuid);
    attached.vf = {pci("0000:01:00.0"), 2};
    attached.verification.emplace().verdict = Verdict::pass;
    api.on("GET /v1/attachments vm=" + uuid, 200, test::list<Attachment>({attached}));
    auto const page = vfctl(api, {"vm", "show", "db1"});
    EXPECT_EQ(page.code, 0) << page.err;
    for (auto const* const line :
         {"state:             running\n", "CID:               3\n", "0000:01:00.0/2  3f9c2b1d",
          "pass      1970-01-01T00:00:00.000Z\n",
          "0000:05:00.0  hostdev0  no       yes         no\n",
          "0000:06:00.0  -         no       no          yes\n",
          "52:54:00:00:00:01  bridge   -             no\n",
          "52:54:00:00:00:02  hostdev  0000:05:00.0  yes\n"})
        EXPECT_THAT(page.out, HasSubstr(line));
    EXPECT_THAT(page.out, Not(HasSubstr("0000:01:10.4  ua-vfmgr")));
    EXPECT_EQ(vfctl(api, {"vm", "show", uuid, "-j"}).out, nlohmann::json(vm).dump() + "\n");
    EXPECT_EQ(vfctl(api, {"vm", "list", "-c", "vm,vfs"}).out, "VM   VFS\ndb1  1\n");
    EXPECT_EQ(vfctl(api, {"vm", "show", "db9"}).code, 3);
}

TEST(VfctlPfForget, DeletesTheSpecAlone) {
    Api api;
    auto const done = test::operation(OperationState::succeeded);
    api.on("GET /v1/pfs", 200, test::list<PfView>({test::pf("0000:01:00.0", "ens1")}));
    api.on("DELETE " + pf_path + "/spec", 202, done);
    api.on("GET /v1/operations/op1 wait=60", 200, done);
    auto const ran = vfctl(api, {"pf", "forget", "ens1"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.err, "vfctl: 0000:01:00.0 is not managed any more; it stays as it is\n");
}

TEST(VfctlRdmaLinkShow, IsOneLink) {
    Api api;
    RdmaLink link;
    link.name = "rxe0";
    api.on("GET /v1/rdma-links/rxe0", 200, link);
    EXPECT_EQ(vfctl(api, {"rdma", "link", "show", "rxe0", "-o", "name"}).out, "rxe0\n");
    EXPECT_EQ(vfctl(api, {"rdma", "link", "show", "rxe9"}).code, 3);
    EXPECT_EQ(vfctl(api, {"rdma", "link", "show", "../x"}).code, 2);
}

}  // namespace
}  // namespace vfmgr
