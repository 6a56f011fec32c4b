// SPDX-License-Identifier: Apache-2.0
// Reported values: null where nothing is known, and a fact is unchanged after parsing it again.
#include "api/types/operation.hpp"
#include "api/types/pf.hpp"
#include "api/types/verification.hpp"
#include "api/types/vm_info.hpp"
#include "documents.hpp"

namespace vfmgr {
namespace {

constexpr char const* vf = R"({"index": 2, "pci": "0000:01:10.4", "driver": "vfio-pci",
    "iommu_group": 0, "ifname": null, "settings": {"mac": "00:00:00:00:00:00", "trust": false},
    "holders": [{"pid": 2147483647, "comm": "qemu-system-x86"}]})";
constexpr char const* vm = R"({"uuid": "u", "name": "vm1", "state": "shut_off", "persistent": true,
    "autostart": false, "start_id": null, "vsock_cid": null, "has_vsock": false,
    "free_pcie_ports": 0, "live": [], "config": [{"pci": "0000:01:10.4", "alias": null}],
    "interfaces": [{"mac": "52:54:00:00:00:01", "type": "bridge", "pci": null, "standby": true}],
    "hostdev_networks": ["pool"]})";
constexpr char const* pf = R"({"pci": "10000:01:00.0", "ifname": "", "driver": "igb",
    "vendor_name": "", "device_name": "", "link_layer": "infiniband", "mac": null, "total_vfs": 7,
    "num_vfs": 0, "mtu": 4294967295, "up": false, "carrier": false, "numa_node": -1,
    "rdma_device": null, "rdma_driver": "rxe"})";
constexpr char const* operation = R"({"id": "o", "kind": "restore", "state": "failed",
    "subject": "/v1/pfs/0000:01:00.0", "steps": [{"sentence": "bind VF 2", "state": "undone"}],
    "problem": {"code": "kernel_refused", "detail": "d", "remedy": "r",
                "cause": [{"call": "c", "code": "EIO", "text": "t"}]},
    "requested_by": "daemon", "created_at": "1970-01-01T00:00:00.000Z", "finished_at": null})";
constexpr char const* verification = R"({"run": "r", "attachment": "3f9c2b1d", "verdict": "pending",
    "tests": [{"name": "rc_ping", "verdict": "not_applicable", "by": "host",
               "mismatches": 18446744073709551615, "figures": {"p50_us": 1e-9, "": 0}}],
    "warnings": [{"test": "rc_ping", "detail": "slower", "remedy": ""}],
    "peer_gid": null, "vf_mac": null, "path": "wire", "started_at": "2026-01-31T12:00:00.001Z",
    "finished_at": "2026-01-31T12:00:00.002Z"})";

TEST(Facts, SurviveTheirJson) {
    test::expect_survives<VfState>(vf);
    test::expect_survives<VmInfo>(vm);
    test::expect_survives<PfInfo>(pf);
    test::expect_survives<Operation>(operation);
    test::expect_survives<Verification>(verification);
}

TEST(Facts, AreNullWhereNothingIsReported) {
    nlohmann::json const state = from_json_text<VfState>(vf).value();
    EXPECT_TRUE(state.at("ifname").is_null());
    EXPECT_EQ(state.at("iommu_group"), 0) << "group 0 is a group";
    EXPECT_EQ(state.at("settings").at("trust"), false);
    EXPECT_FALSE(state.at("settings").contains("spoofchk")) << "which is how settings say so";
    nlohmann::json const info = from_json_text<PfInfo>(pf).value();
    for (auto const* member : {"mac", "rdma_device"}) EXPECT_TRUE(info.at(member).is_null());
    nlohmann::json const machine = from_json_text<VmInfo>(vm).value();
    for (auto const* member : {"start_id", "vsock_cid"}) EXPECT_TRUE(machine.at(member).is_null());
}

TEST(Facts, OperationsAreFinishedWhenTheySucceededOrFailed) {
    Operation value;
    for (auto const& [state, expected] :
         {std::pair{OperationState::queued, false}, std::pair{OperationState::running, false},
          std::pair{OperationState::succeeded, true}, std::pair{OperationState::failed, true}}) {
        value.state = state;
        EXPECT_EQ(finished(value), expected) << enum_name(state);
    }
}

constexpr auto read_vf = &test::refusal_of<VfState>;
constexpr auto read_vm = &test::refusal_of<VmInfo>;
constexpr auto read_pf = &test::refusal_of<PfInfo>;
constexpr auto read_operation = &test::refusal_of<Operation>;
constexpr auto read_verification = &test::refusal_of<Verification>;

class FactRefuses : public testing::TestWithParam<test::Refused> {};
TEST_P(FactRefuses, AtItsPlace) {
    test::expect_refused(GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Facts, FactRefuses,
    testing::Values(
        test::Refused{"vf_settings", read_vf, vf, R"({"settings": null})", "/settings",
                      "is required"},
        test::Refused{"vf_settings_number", read_vf, vf, R"({"settings": 5})", "/settings",
                      "must be an object"},
        test::Refused{"vf_setting", read_vf, vf, R"({"settings": {"vlan": {"id": 4095}}})",
                      "/settings/vlan/id", "must be from 0 to 4094; 0 means no tag"},
        test::Refused{"vf_holder", read_vf, vf, R"({"holders": [{"pid": 2147483648, "comm": ""}]})",
                      "/holders/0/pid", "must be a whole number from -2147483648 to 2147483647"},
        test::Refused{"vm_hostdev", read_vm, vm, R"({"live": [{"pci": "x", "alias": null}]})",
                      "/live/0/pci", "'x' is not a PCI address such as 0000:3b:00.2"},
        test::Refused{"vm_interface", read_vm, vm,
                      R"({"interfaces": [{"type": "bridge", "standby": false}]})",
                      "/interfaces/0/mac", "is required"},
        test::Refused{"vm_pool", read_vm, vm, R"({"hostdev_networks": ["a", 1]})",
                      "/hostdev_networks/1", "must be a string"},
        test::Refused{"pf_layer", read_pf, pf, R"({"link_layer": "IB"})", "/link_layer",
                      "must be one of ethernet, infiniband"},
        test::Refused{"operation_step", read_operation, operation,
                      R"({"steps": [{"sentence": "s", "state": "doing"}]})", "/steps/0/state",
                      "must be one of planned, intended, done, failed, undone"},
        test::Refused{"operation_time", read_operation, operation, R"({"created_at": "yesterday"})",
                      "/created_at", "must be a time such as 2026-01-31T12:00:00.000Z"},
        test::Refused{"verification_mac", read_verification, verification, R"({"vf_mac": 5})",
                      "/vf_mac", "must be a string"}),
    test::name_of);

}  // namespace
}  // namespace vfmgr
