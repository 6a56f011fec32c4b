// SPDX-License-Identifier: Apache-2.0
#include "api/types/verification.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<Counter> V>
void fields(F& f, V& counter) {
    f.value("source", counter.source);
    f.value("device", counter.device);
    f.value("name", counter.name);
    f.value("count", counter.count);
}

template <class F, Of<Loss> V>
void fields(F& f, V& loss) {
    f.value("side", loss.side);
    f.value("counter", loss.counter);
    f.value("detail", loss.detail);
    f.value("remedy", loss.remedy);
}

template <class F, Of<Warning> V>
void fields(F& f, V& warning) {
    f.value("test", warning.test);
    f.value("detail", warning.detail);
    f.value("remedy", warning.remedy);
}

template <class F, Of<TestResult> V>
void fields(F& f, V& test) {
    f.value("name", test.name);
    f.value("verdict", test.verdict);
    f.value("by", test.by);
    f.defaulted("bytes_checked", test.bytes_checked);
    f.defaulted("mismatches", test.mismatches);
    f.defaulted("figures", test.figures);
    f.defaulted("detail", test.detail);
    f.defaulted("remedy", test.remedy);
}

template <class F, Of<Verification> V>
void fields(F& f, V& verification) {
    f.value("run", verification.run);
    f.value("attachment", verification.attachment);
    f.value("verdict", verification.verdict);
    f.value("tests", verification.tests);
    f.nullable("peer_gid", verification.peer_gid);
    f.nullable("vf_mac", verification.vf_mac);
    f.maybe("vf_guid", verification.vf_guid);
    f.defaulted("losses", verification.losses);
    f.defaulted("warnings", verification.warnings);
    f.nullable("path", verification.path);
    f.maybe("dscp", verification.dscp);
    f.nullable("responder", verification.responder);
    f.defaulted("detail", verification.detail);
    f.defaulted("remedy", verification.remedy);
    f.value("started_at", verification.started_at);
    f.nullable("finished_at", verification.finished_at);
}

template struct Json<Counter>;
template struct Json<TestResult>;
template struct Json<Verification>;

}  // namespace vfmgr
