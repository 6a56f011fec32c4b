// SPDX-License-Identifier: Apache-2.0
// export, diff and apply.
#include "api/types/desired.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr {
namespace {

using test::Api;
using test::vfctl;
using testing::HasSubstr;

struct Desired : testing::Test {
    Api api;
    test::TemporaryFolder const folder;
    std::string const file = folder.file("host.yaml");
    std::string const body = R"({"networks":{"train":{"mtu":9000}}})";
    std::string const planned = "PUT /v1/desired dry_run=true";

    Desired() { std::ofstream(file) << "networks:\n  train: {mtu: 9000}\n"; }
    void answer(std::vector<DesiredChange> const& changes, std::vector<PlannedStep> const& steps) {
        api.on(planned, 200, DesiredDryRun{changes, {steps, {}, {}}});
    }
};

TEST_F(Desired, IsPrintedAsYaml) {
    api.on("GET /v1/desired", 200, DesiredDocument{{{"0000:01:00.0", {}}}, {}, {}, {}, {}});
    auto const yaml = vfctl(api, {"export"});
    EXPECT_EQ(yaml.code, 0) << yaml.err;
    EXPECT_THAT(
        yaml.out,
        HasSubstr(
            "pfs:\n  \"0000:01:00.0\":\n    free_vfs: []\n    labels: {}\n    mode: manage\n"));
    EXPECT_THAT(vfctl(api, {"export", "-j"}).out, HasSubstr(R"({"networks":{},"pfs":{)"));
    EXPECT_THAT(vfctl(api, {"export", "-o", "csv"}).err, HasSubstr("a document, not a table"));
}

TEST_F(Desired, DiffSaysWhatChangesAndExitsWithEight) {
    answer({{"/networks/train/mtu", "1500", "9000", "network train: mtu becomes 9000 (now 1500)"}},
           {{"create 8 VFs of 0000:01:00.0"}});
    auto const differs = vfctl(api, {"diff", "-f", file});
    EXPECT_EQ(differs.code, 8) << differs.err;
    EXPECT_THAT(differs.out, HasSubstr("network train: mtu becomes 9000 (now 1500)"));
    EXPECT_THAT(differs.out, HasSubstr("create 8 VFs"));
    EXPECT_EQ(api.asked(planned).body, body);
    auto const csv = vfctl(api, {"diff", "-f", file, "-o", "csv"});
    EXPECT_EQ(csv.out, "change,now,then\r\n/networks/train/mtu,1500,9000\r\n");
}

TEST_F(Desired, DiffOfTheSameExitsWithZero) {
    answer({}, {});
    auto const same = vfctl(api, {"diff", "-f", file});
    EXPECT_EQ(same.code, 0) << same.err;
    EXPECT_EQ(same.out, "nothing changes\n");
}

TEST_F(Desired, DiffShowsWhatTheHostDriftedFrom) {
    answer({}, {{"create 8 VFs"}});
    EXPECT_EQ(vfctl(api, {"diff", "-f", file}).code, 8);
}

TEST_F(Desired, IsAppliedAndFollowed) {
    auto operation = test::operation(OperationState::succeeded);
    operation.kind = OperationKind::apply;
    api.on("PUT /v1/desired prune=true", 202, operation);
    api.on("GET /v1/operations/op1 wait=60", 200, operation);
    auto const done = vfctl(api, {"apply", "-f", file, "--prune"});
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_THAT(done.err, HasSubstr("the host is as the file says"));
    answer({}, {});
    EXPECT_EQ(vfctl(api, {"apply", "-f", file, "--dry-run"}).out, "nothing changes\n");
}

TEST_F(Desired, AFileThatIsNoDocumentIsNotSent) {
    std::ofstream(file) << "networks:\n  train: &x {}\n";
    auto const refused = vfctl(api, {"apply", "-f", file});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("line 2, column 10: anchors are not accepted"));
    EXPECT_EQ(vfctl(api, {"apply"}).code, 2) << "without a file";
}

}  // namespace
}  // namespace vfmgr
