// SPDX-License-Identifier: Apache-2.0
#include "api/types/attachment.hpp"
#include "documents.hpp"

namespace vfmgr {
namespace {

using test::Refused;

constexpr char const* least = R"({"vm": "vm1", "pf": "0000:01:00.0"})";
constexpr char const* attached = R"({"vm": "vm1", "pf": "0000:01:00.0", "network": "train"})";

constexpr char const* external =
    R"({"holder": {"kind": "external", "name": "qm-104"}, "pf": "0000:01:00.0"})";

class AttachmentSpecRefuses : public testing::TestWithParam<Refused> {};
TEST_P(AttachmentSpecRefuses, AtItsPlace) {
    test::expect_refused(GetParam());
}
constexpr auto read_spec = &test::refusal_of<AttachmentSpec>;
constexpr char const* vm_text = "must not contain control characters";
constexpr char const* members =
    "must be a member of settings: mac, vlan, max_tx_rate_mbps, min_tx_rate_mbps, spoofchk, "
    "link_state, query_rss, trust, node_guid, port_guid, msix_vectors, roce";
constexpr char const* no_vm = "must name a VM, by name or UUID; or name a holder";
constexpr char const* holders_uid = "must be from 1 to 4294967294; leave it out for root";
constexpr char const* seconds = "must be from 5 to 3600";
constexpr char const* every = "must be from 60 to 2592000 (30 days), or 0 (never)";
constexpr char const* needs_network = "requires a network: RDMA is proved over an address in it";
INSTANTIATE_TEST_SUITE_P(
    Specs, AttachmentSpecRefuses,
    testing::Values(
        Refused{"no_object", read_spec, "", "[]", "", "must be an object"},
        Refused{"vm_missing", read_spec, least, R"({"vm": null})", "/vm", no_vm},
        Refused{"vm_empty", read_spec, least, R"({"vm": ""})", "/vm", no_vm},
        Refused{"vm_and_holder", read_spec, external, R"({"vm": "vm1"})", "/holder",
                "is instead of a VM of libvirt; leave vm out"},
        Refused{"holder_guest_address", read_spec, external, R"({"guest_address": "0000:05:00.0"})",
                "/guest_address", "is for a VM of libvirt"},
        Refused{"holder_add_ports", read_spec, external, R"({"add_ports": false})", "/add_ports",
                "is for a VM of libvirt"},
        Refused{"holder_add_vsock", read_spec, external, R"({"add_vsock": true})", "/add_vsock",
                "is for a VM of libvirt"},
        Refused{"holder_kind", read_spec, external, R"({"holder": {"kind": "libvirt"}})",
                "/holder/kind", "must be one of external"},
        Refused{"holder_empty", read_spec, external, R"({"holder": {"name": ""}})", "/holder/name",
                rule_of_holder_names},
        Refused{"holder_path", read_spec, external, R"({"holder": {"name": "a/b"}})",
                "/holder/name", rule_of_holder_names},
        Refused{"holder_dash", read_spec, external, R"({"holder": {"name": "-a"}})", "/holder/name",
                rule_of_holder_names},
        Refused{"holder_uid_0", read_spec, external, R"({"holder": {"uid": 0}})", "/holder/uid",
                holders_uid},
        Refused{"holder_uid_none", read_spec, external, R"({"holder": {"uid": 4294967295}})",
                "/holder/uid", holders_uid},
        Refused{"holder_unknown", read_spec, external, R"({"holder": {"gid": 7}})", "/holder/gid",
                "is not known here"},
        Refused{"vm_newline", read_spec, least, R"({"vm": "a\nb"})", "/vm", vm_text},
        Refused{"vm_nul", read_spec, least, R"({"vm": "a\u0000"})", "/vm", vm_text},
        Refused{"vm_delete", read_spec, least, R"({"vm": "\u007f"})", "/vm", vm_text},
        Refused{"vm_c1", read_spec, least, R"({"vm": "\u009b2J"})", "/vm", vm_text},
        Refused{"vm_turned", read_spec, least, R"({"vm": "a\u202eb"})", "/vm", vm_text},
        Refused{"network_upper", read_spec, least, R"({"network": "Lab"})", "/network",
                "must be 1 to 32 of a-z, 0-9 and '-'"},
        Refused{"pf_is_vf_path", read_spec, least, R"({"pf": "0000:01:00.0/2"})", "/pf",
                "'0000:01:00.0/2' is not a PCI address such as 0000:3b:00.2"},
        Refused{"vf_negative", read_spec, least, R"({"vf": -1})", "/vf",
                "must be a whole number from 0 to 65535"},
        Refused{"vf_2_to_64", read_spec, least, R"({"vf": 18446744073709551616})", "/vf",
                "must be a whole number from 0 to 65535"},
        Refused{"address_nonsense", read_spec, attached, R"({"address": "192.168.100.2/24"})",
                "/address", "'192.168.100.2/24' is not an IP address such as 192.168.100.2"},
        Refused{"address_without_network", read_spec, least, R"({"address": "192.168.100.2"})",
                "/address", "requires a network that it belongs to"},
        Refused{"required_without_network", read_spec, least, R"({"verify": "required"})",
                "/verify", needs_network},
        Refused{"background_without_network", read_spec, least, R"({"verify": "background"})",
                "/verify", needs_network},
        Refused{"near_a_nic", read_spec, least, R"({"near": "nic"})", "/near",
                "must be one of gpu"},
        Refused{"setting_multicast", read_spec, least,
                R"({"settings": {"mac": "33:33:00:00:00:01"}})", "/settings/mac",
                "must not be a multicast address: the first octet must be even"},
        Refused{"setting_vlan", read_spec, least, R"({"settings": {"vlan": {"id": 4095}}})",
                "/settings/vlan/id", "must be from 0 to 4094; 0 means no tag"},
        Refused{"setting_unknown", read_spec, least, R"({"settings": {"rate": 5}})",
                "/settings/rate", "is not known here"},
        Refused{"settings_list", read_spec, least, R"({"settings": ["mac"]})", "/settings",
                "must be an object"},
        Refused{"best_effort_unknown", read_spec, least, R"({"best_effort": ["mac", "qos"]})",
                "/best_effort/1", members},
        Refused{"best_effort_upper", read_spec, least, R"({"best_effort": ["MAC"]})",
                "/best_effort/0", members},
        Refused{"best_effort_twice", read_spec, least, R"({"best_effort": ["mac", "vlan", "mac"]})",
                "/best_effort/2", "is listed twice"},
        Refused{"best_effort_number", read_spec, least, R"({"best_effort": [5, "mac"]})",
                "/best_effort/0", "must be a string"},
        Refused{"persistence", read_spec, least, R"({"persistence": "auto_"})", "/persistence",
                "must be one of auto, live, config"},
        Refused{"verify", read_spec, attached, R"({"verify": true})", "/verify",
                "must be one of none, background, required"},
        Refused{"timeout_4", read_spec, least, R"({"verify_timeout_seconds": 4})",
                "/verify_timeout_seconds", seconds},
        Refused{"timeout_3601", read_spec, least, R"({"verify_timeout_seconds": 3601})",
                "/verify_timeout_seconds", seconds},
        Refused{"every_without_network", read_spec, least, R"({"verify_every_seconds": 60})",
                "/verify_every_seconds", needs_network},
        Refused{"every_59", read_spec, attached, R"({"verify_every_seconds": 59})",
                "/verify_every_seconds", every},
        Refused{"every_31_days", read_spec, attached, R"({"verify_every_seconds": 2678400})",
                "/verify_every_seconds", every}),
    test::name_of);

TEST(AttachmentSpec, SurvivesItsJson) {
    for (auto const* base : {least, attached})
        for (auto const* patch :
             {"{}", R"({"vf": 0})", R"({"vf": 65535, "persistence": "live"})",
              R"({"settings": {"vlan": {"id": 0}, "trust": false}, "best_effort": ["trust"]})",
              R"({"verify_timeout_seconds": 5})", R"({"verify_timeout_seconds": 3600})",
              R"({"verify_every_seconds": 0})", R"({"network": "a", "verify_every_seconds": 60})",
              R"({"network": "a", "verify_every_seconds": 2592000})",
              R"({"vm": "6f5b2f1e-6c0e-4f2a-9a55-0c3f0f0f7c11"})", R"({"vm": "mäuschen /\"<&"})",
              R"({"network": "a", "verify": "required", "address": "fd00::1"})"})
            test::expect_survives<AttachmentSpec>(test::patched(base, patch));
    auto const spec = from_json_text<AttachmentSpec>(least).value();
    EXPECT_EQ(spec.vf, std::nullopt);
    EXPECT_EQ(spec.network, std::nullopt);
    EXPECT_TRUE(empty(spec.settings));
    EXPECT_EQ(spec.verify, std::nullopt);
    EXPECT_EQ(spec.verify_timeout_seconds, 120U);
}

TEST(AttachmentSpec, OfAHolderSurvivesItsJson) {
    for (auto const* patch :
         {"{}", R"({"vm": ""})", R"({"holder": {"uid": 1}})", R"({"holder": {"uid": 4294967294}})",
          R"({"holder": {"name": "vm:1_a.B"}, "network": "a"})"})
        test::expect_survives<AttachmentSpec>(test::patched(external, patch));
    auto const spec = from_json_text<AttachmentSpec>(external).value();
    EXPECT_EQ(nlohmann::json(spec).at("vm"), "") << "an earlier vfctl requires it";
    auto const of_vm = from_json_text<AttachmentSpec>(least).value();
    EXPECT_FALSE(nlohmann::json(of_vm).contains("holder"));
}

TEST(AttachmentSpec, NamesOfVmsHaveAtMost128Characters) {
    auto document = nlohmann::json::parse(least);
    std::string accented;
    for (int i = 0; i < 128; ++i) accented += "é";
    for (auto const& name : {std::string(128, 'a'), accented}) {
        document["vm"] = name;
        test::expect_survives<AttachmentSpec>(document.dump());
    }
    for (auto const& name : {std::string(129, 'a'), accented + "é", std::string(100000, 'a')}) {
        document["vm"] = name;
        EXPECT_EQ(test::refusal_of<AttachmentSpec>(document.dump()).violations,
                  (std::vector<Violation>{{"/vm", "must be at most 128 characters"}}));
    }
}

// The parsed list is shorter than the one sent: a rule would count wrongly.
TEST(AttachmentSpec, BestEffortIsJudgedOnlyWhenAllOfItWasRead) {
    auto const text = test::patched(least, R"({"best_effort": [5, "qos"]})");
    EXPECT_EQ(test::refusal_of<AttachmentSpec>(text).violations,
              (std::vector<Violation>{{"/best_effort/0", "must be a string"}}));
}

constexpr char const* attachment = R"({"id": "3f9c2b1d",
    "spec": {"vm": "vm1", "pf": "0000:01:00.0", "settings": {"trust": true}},
    "vf": {"pf": "0000:01:00.0", "index": 2}, "vf_pci": "0000:01:10.4",
    "vm_uuid": "6f5b2f1e-6c0e-4f2a-9a55-0c3f0f0f7c11", "vm": "vm1",
    "settings": {"trust": true}, "baseline": {"mac": "00:00:00:00:00:00", "trust": false},
    "address": null, "live": true, "config": false, "state": "attached", "verification": null,
    "created_at": "2026-01-31T12:00:00.000Z"})";

// As an earlier vfmgrd has stored it.
TEST(Attachment, ThatNamesNoGpuIsNearNone) {
    auto const read = from_json_text<Attachment>(attachment);
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_FALSE(read->near);
}

class AttachmentRefuses : public testing::TestWithParam<Refused> {};
TEST_P(AttachmentRefuses, AtItsPlace) {
    test::expect_refused(GetParam());
}
constexpr auto read_attachment = &test::refusal_of<Attachment>;
constexpr char const* hex = "must be 8 hexadecimal digits";
INSTANTIATE_TEST_SUITE_P(
    Attachments, AttachmentRefuses,
    testing::Values(
        Refused{"id_empty", read_attachment, attachment, R"({"id": ""})", "/id", hex},
        Refused{"id_short", read_attachment, attachment, R"({"id": "3f9c2b1"})", "/id", hex},
        Refused{"id_long", read_attachment, attachment, R"({"id": "3f9c2b1d0"})", "/id", hex},
        Refused{"id_upper", read_attachment, attachment, R"({"id": "3F9C2B1D"})", "/id", hex},
        Refused{"id_nul", read_attachment, attachment, R"({"id": "3f9c2b1\u0000"})", "/id", hex},
        Refused{"spec", read_attachment, attachment, R"({"spec": {"vm": 1}})", "/spec/vm",
                "must be a string"},
        Refused{"vf_index", read_attachment, attachment, R"({"vf": {"index": 65536}})", "/vf/index",
                "must be a whole number from 0 to 65535"},
        Refused{"vf_unknown", read_attachment, attachment, R"({"vf": {"pci": "0000:01:10.4"}})",
                "/vf/pci", "is not known here"},
        Refused{"no_settings", read_attachment, attachment, R"({"settings": null})", "/settings",
                "is required"},
        Refused{"setting_unknown", read_attachment, attachment, R"({"baseline": {"rate": 1}})",
                "/baseline/rate", "is not known here"},
        Refused{"state", read_attachment, attachment, R"({"state": "gone"})", "/state",
                "must be one of attaching, attached, detaching"}),
    test::name_of);

TEST(Attachment, SurvivesItsJsonWithWhatWasObserved) {
    test::expect_survives<Attachment>(attachment);
    auto const value = from_json_text<Attachment>(attachment).value();
    EXPECT_TRUE(value.baseline.mac.value().zero())
        << "observed, so the rules of a spec do not apply";
    EXPECT_TRUE(nlohmann::json(value).at("address").is_null());
    EXPECT_FALSE(nlohmann::json(value).at("spec").contains("address"));
}

// An earlier vfmgr accepted it; a store that can't be read would be worse.
TEST(Attachment, KeepsTheSpecThatItCameFrom) {
    test::expect_survives<Attachment>(
        test::patched(attachment, R"({"spec": {"vm": "a\u202eb", "network": "Lab"}})"));
}

TEST(Attachment, AliasIsTheOneThatVmsXmlHas) {
    EXPECT_EQ(hostdev_alias("3f9c2b1d"), "ua-vfmgr-3f9c2b1d");
}

}  // namespace
}  // namespace vfmgr
