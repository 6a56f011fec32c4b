// SPDX-License-Identifier: Apache-2.0
#include "service/cli/certificate.hpp"

#include <gmock/gmock.h>

#include "api/types/json.hpp"
#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using testing::HasSubstr;

nlohmann::json const whole = nlohmann::json::parse(R"({"vf": {"pf": "0000:01:00.0", "index": 2},
    "vf_pci": "0000:01:10.4", "attachment": "3f9c2b1d", "vm": "vm1",
    "settings": {"mac": "00:00:00:00:00:00", "trust": false}, "driver": null,
    "observed_at": "2026-01-31T12:00:04.000Z",
    "attached": {"at": "2026-01-31T12:00:01.000Z", "operation": "op1",
                 "requested_by": "token:9f86d081"},
    "detached": {"at": "2026-01-31T12:00:02.000Z", "operation": "op2", "requested_by": "uid:0"},
    "reset": {"method": "flr", "done_at": "2026-01-31T12:00:03.000Z"},
    "restored": {"was": {"mac": "02:00:00:00:00:07", "vlan": {"id": 100, "qos": 3}, "trust": true},
                 "is": {"mac": "00:00:00:00:00:00", "vlan": {"id": 0, "qos": 0}, "trust": false}},
    "rotated": {"mac": {"was": "02:00:00:00:00:07", "is": "00:00:00:00:00:00"}, "node_guid": null,
                "port_guid": {"was": "00:00:00:00:00:00:00:01", "is": null}},
    "counters": {"rx_packets": 7, "rx_bytes": null, "tx_packets": 0}})");

Certificate read(nlohmann::json const& document) {
    return from_json_document<Certificate>(document).value();
}

TEST(CertificatePage, TellsWhatWasDone) {
    EXPECT_EQ(
        certificate_page(read(whole), {}),
        "VF:              0000:01:00.0/2 (0000:01:10.4)\n"
        "attachment:      3f9c2b1d\n"
        "VM:              vm1\n"
        "attached:        2026-01-31T12:00:01.000Z, requested by token:9f86d081 (operation op1)\n"
        "detached:        2026-01-31T12:00:02.000Z, requested by uid:0 (operation op2)\n"
        "reset:           flr, done 2026-01-31T12:00:03.000Z\n"
        "verified clean:  2026-01-31T12:00:04.000Z\n"
        "driver now:      -\n"
        "\n"
        "SETTING  BEFORE THE DETACH  NOW\n"
        "mac      02:00:00:00:00:07  00:00:00:00:00:00\n"
        "vlan     100:3              0\n"
        "trust    yes                no\n"
        "\n"
        "ADDRESS    WHILE ATTACHED           NOW\n"
        "mac        02:00:00:00:00:07        00:00:00:00:00:00\n"
        "port_guid  00:00:00:00:00:00:00:01  -\n"
        "\n"
        "COUNTER     BEFORE THE RESET\n"
        "rx_packets  7\n"
        "tx_packets  0\n");
}

// As an earlier vfmgrd stored it.
TEST(CertificatePage, LeavesOutWhatIsNotKnown) {
    auto plain = whole;
    plain["counters"] = plain["reset"] = nullptr;
    plain["attached"] = {{"at", nullptr}, {"operation", nullptr}, {"requested_by", nullptr}};
    plain["restored"] = {{"was", nlohmann::json::object()}, {"is", nlohmann::json::object()}};
    plain["rotated"] = {{"mac", nullptr}, {"node_guid", nullptr}, {"port_guid", nullptr}};
    auto const page = certificate_page(read(plain), {});
    EXPECT_THAT(page, HasSubstr("reset:           -, done -\n"));
    for (auto const* title : {"SETTING", "ADDRESS", "COUNTER"})
        EXPECT_THAT(page, testing::Not(HasSubstr(title)));
}

TEST(Certificate, IsAskedForByIdAlsoWhenTheAttachmentIsGone) {
    test::Api api;
    api.on("GET /v1/attachments/3f9c2b1d/certificate", 200, whole);
    auto const shown = test::vfctl(api, {"attachment", "certificate", "3f9c2b1d"});
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("reset:           flr, done 2026-01-31T12:00:03.000Z\n"));
    EXPECT_EQ(api.lines(), (std::vector<std::string>{"GET /v1/attachments/3f9c2b1d/certificate"}))
        << "no list has it any more";
    EXPECT_EQ(test::vfctl(api, {"-j", "attachment", "certificate", "3f9c2b1d"}).out,
              whole.dump() + "\n");
    EXPECT_EQ(test::vfctl(api, {"-o", "name", "attachment", "certificate", "3f9c2b1d"}).out,
              "3f9c2b1d\n");
    EXPECT_EQ(
        test::vfctl(api, {"-o", "csv", "attachment", "certificate", "3f9c2b1d"}).out,
        "attachment,vm,pf,vf,attached,attached_by,detached,detached_by,reset,reset_done,clean_at,"
        "mac_was,mac\r\n"
        "3f9c2b1d,vm1,0000:01:00.0,2,2026-01-31T12:00:01.000Z,token:9f86d081,2026-01-31T12:00:02."
        "000Z,uid:0,flr,2026-01-31T12:00:03.000Z,2026-01-31T12:00:04.000Z,"
        "02:00:00:00:00:07,00:00:00:00:00:00\r\n");
}

TEST(Certificate, OfAVmIsThatOfItsAttachmentWhichGoesOn) {
    test::Api api;
    api.on("GET /v1/attachments", 200,
           test::list<Attachment>({test::attachment("3f9c2b1d", "vm1")}));
    api.refuse("GET /v1/attachments/3f9c2b1d/certificate",
               {Problem::not_found, "attachment 3f9c2b1d has not ended", "vfctl detach 3f9c2b1d"});
    auto const refused = test::vfctl(api, {"attachment", "certificate", "vm1"});
    EXPECT_EQ(refused.code, 3);
    EXPECT_THAT(refused.err, HasSubstr("attachment 3f9c2b1d has not ended"));
    EXPECT_THAT(refused.err, HasSubstr("vfctl detach 3f9c2b1d"));
}

}  // namespace
}  // namespace vfmgr
