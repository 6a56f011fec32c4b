// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/session.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "vfmgr/proof/latency.hpp"
#include "vfmgr/proof/rdma_proof.hpp"
#include "vfmgr/proof/reachability.hpp"
#include "vfmgr/proof/turns.hpp"
#include "vfmgr/rdma/counters.hpp"

namespace vfmgr::verify {

std::string describe(Verification const& verification, Figures shown) {
    auto text = fmt::format("attachment {}: {}\n", verification.attachment,
                            enum_name(verification.verdict));
    if (verification.tests.empty() && !verification.detail.empty())
        text += fmt::format("  {}\n  remedy: {}\n", verification.detail, verification.remedy);
    text += test_lines(verification.tests, shown);
    for (auto const& loss : verification.losses)
        text += fmt::format("  warning: {}\n    remedy: {}\n", loss.detail, loss.remedy);
    for (auto const& warning : verification.warnings)
        text += fmt::format("  warning: {}\n    remedy: {}\n", warning.detail, warning.remedy);
    text +=
        fmt::format("  path: {}\n", verification.path ? enum_name(*verification.path) : "unknown");
    if (verification.dscp) text += fmt::format("  DSCP: {}\n", *verification.dscp);
    if (verification.responder) text += fmt::format("  responder: {}\n", *verification.responder);
    return text;
}

namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t asked_bytes_max = 256 * mib;
constexpr std::uint64_t needed_bytes = 64 * mib;
constexpr std::size_t mrs_requested = 256;
constexpr std::size_t small_bytes = 4096;

// MemAvailable of /proc/meminfo, in bytes; 0 if it is missing.
std::uint64_t available_memory() {
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::uint64_t kib = 0;
    for (std::string unit; file >> name >> kib; std::getline(file, unit))
        if (name == "MemAvailable:") return kib * 1024;
    return 0;
}

// Proves that the MR works: reads the host's message into its end.
Result<void> read_into(GuestStream& stream, RegisteredMemory const& mr, Deadline deadline) {
    auto message = stream.message(0);
    auto const bytes = message.local.bytes.size();
    message.local = mr.sge(mr.bytes().size() - bytes, bytes);
    VFMGR_CHECK(stream.pairs().front().transfer(0, TransferDirection::read, message));
    return await_all(stream.queue(), 1, deadline, "a read into the MR");
}

struct Largest {
    std::uint64_t bytes = 0;
    std::optional<Error> refused;  // why twice as many were refused
};

Largest find_largest(GuestStream& stream, std::uint64_t bytes_max, Deadline deadline) {
    Largest largest;
    for (auto bytes = mib; bytes <= bytes_max; bytes *= 2) {
        auto const mr = RegisteredMemory::make(stream.pd(), bytes, IBV_ACCESS_LOCAL_WRITE, "MR");
        auto used = mr ? read_into(stream, *mr, deadline) : fail(mr.error());
        if (!used) {
            largest.refused = used.error();
            break;
        }
        largest.bytes = bytes;
    }
    return largest;
}

std::size_t count_mrs(GuestStream const& stream) {
    std::vector<RegisteredMemory> mrs;
    while (mrs.size() < mrs_requested) {
        auto mr = RegisteredMemory::make(stream.pd(), small_bytes, IBV_ACCESS_LOCAL_WRITE, "MR");
        if (!mr) break;
        mrs.push_back(std::move(*mr));
    }
    return mrs.size();
}

void add_limits(std::map<std::string, double>& figures, ibv_pd* pd) {
    rlimit locked{};
    if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
        figures["locked_limit_bytes"] = static_cast<double>(locked.rlim_cur);
    ibv_device_attr device{};
    if (ibv_query_device(pd->context, &device) != 0) return;
    // SoftRoCE reports ~0: no limit.
    if (device.max_mr_size < (std::uint64_t{1} << 62))
        figures["device_region_bytes_max"] = static_cast<double>(device.max_mr_size);
    figures["device_regions_max"] = device.max_mr;
}

}  // namespace

Result<Measured> memory_regions(GuestStream& stream, Load const&, Deadline deadline) {
    auto const bytes_max = std::min(asked_bytes_max, available_memory() / 2);
    auto const largest = find_largest(stream, bytes_max, deadline);
    auto made = measured();
    auto& figures = made.result.figures;
    add_limits(figures, stream.pd());
    figures["largest_bytes"] = static_cast<double>(largest.bytes);
    figures["regions"] = static_cast<double>(count_mrs(stream));
    made.result.detail =
        fmt::format("one MR of {} MiB; {} MRs of 4 KiB", largest.bytes / mib, figures["regions"]);
    if (!largest.refused) return made;
    made.result.remedy = largest.refused->remedy;
    made.result.detail = detail_with_causes(*largest.refused);
    // Fails only for memory that is free: sizes beyond half of it are not tried.
    if (largest.bytes < needed_bytes) made.result.verdict = Verdict::fail;
    return made;
}

namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds echo_time{10};
constexpr std::chrono::seconds test_time{20};
constexpr std::chrono::seconds report_time{3};  // subtracted from the host's deadline
constexpr std::uint32_t pings_max = 64;
constexpr std::uint64_t mr_bytes_max = 64 << 20;

constexpr std::size_t sentence_max = 900;  // the host refuses sentences beyond 1024 bytes
constexpr std::size_t fact_max = 200;      // and facts beyond 256

Result<void> check_offer(SessionOffer const& offer) {
    bool const good =
        offer.ping_count <= pings_max && offer.ping_size <= mr_bytes_max / pings_max &&
        offer.ping_size % payload_chunk_bytes == 0 && offer.write.length <= mr_bytes_max &&
        offer.read.length <= mr_bytes_max && offer.write.length % payload_chunk_bytes == 0;
    if (good) return {};
    return fail(Problem::invalid_request, "the host's offer exceeds vf-guest's limits",
                "use the same version on VM and host");
}

Measured not_tried(std::string_view name, std::string_view broken) {
    auto made = measured(name);
    made.result.verdict = Verdict::skip;
    made.result.detail = fmt::format("not run: {} failed", broken);
    return made;
}

std::string kernel_release() {
    utsname names{};
    return ::uname(&names) == 0 ? names.release : "";
}

}  // namespace

EndpointOptions endpoint_options(Subject const& subject) {
    auto const& attachment = subject.attachment;
    EndpointOptions options{attachment.address, subject.ifname, attachment.dscp.value_or(0)};
    options.port_guid = attachment.guid;
    if (attachment.pkey) options.pkey = table_entry(*attachment.pkey);
    return options;
}

Result<std::unique_ptr<GuestSession>> GuestSession::prepare(Subject subject) {
    std::unique_ptr<GuestSession> session(new GuestSession(std::move(subject)));
    auto const& attachment = session->subject_.attachment;
    auto& request = session->request_;
    request.attachment = attachment.attachment;
    request.run = attachment.run.value_or("");
    request.nonce = attachment.nonce;
    request.guest.gid = gid_hex(attachment.address.gid());
    if (attachment.rdma == RdmaMode::none) return session;
    VFMGR_TRY(auto rdma, session->open_rdma());
    session->rdma_.emplace(std::move(rdma));
    request.guest = session->rdma_->pair.end();
    return session;
}

Result<GuestSession::Rdma> GuestSession::open_rdma() const {
    VFMGR_TRY(auto endpoint, open_endpoint(endpoint_options(subject_), endpoint_wait));
    // The host never writes here by itself: no remote access.
    VFMGR_TRY(auto pair, QueuePair::make(endpoint, {.sends = 32, .receives = pings_max}, 0));
    return Rdma{std::move(endpoint), std::move(pair)};
}

GuestReport GuestSession::begin_report() const {
    GuestReport report;
    report.nonce = subject_.attachment.nonce;
    report.facts["kernel"] = kernel_release();
    report.facts["ifname"] = subject_.ifname;
    if (!rdma_) return report;
    auto const& endpoint = rdma_->endpoint;
    report.facts["rdma_device"] = endpoint.device;
    if (endpoint.software) report.facts["rdma_software"] = "yes";
    if (!endpoint.subnet) return report;
    report.facts["lid"] = std::to_string(endpoint.subnet->end.lid);
    report.facts["pkeys"] = printable(pkeys_text(endpoint.subnet->pkeys), fact_max);
    return report;
}

GuestReport GuestSession::run(SessionOffer const& offer, std::vector<Measurement> const& tests,
                              StreamHost const& host, OnTest on_test) {
    on_test_ = std::move(on_test);
    NearNic const near(subject_.ifname);
    auto report = begin_report();
    CounterPlace counted{subject_.ifname, {}};
    if (rdma_) counted = {subject_.ifname, rdma_->endpoint.device, rdma_->endpoint.number};
    auto const before = read_counters(counted);
    log_ = KernelLog::follow();
    auto const deadline =
        Steady::now() + std::chrono::seconds(offer.deadline_seconds) - report_time;
    auto const within = [&](auto time) { return std::min(deadline, Steady::now() + time); };
    for (auto const echo : {reachability, path_mtu})
        add(report, echo({subject_.attachment, subject_.ifname, within(echo_time)}));
    bool const proved = rdma_ && prove(report, offer, deadline);
    for (auto const& each : tests) {
        if (!rdma_) break;
        // Figures of a broken path are useless, and take time.
        auto const until = within(stream_patience + each.load.window + test_time);
        add(report, proved ? measure(each, {subject_.attachment, subject_.ifname, rdma_->endpoint,
                                            host, until})
                           : not_tried(each.name, "a proof"));
    }
    report.counters = growth(before, read_counters(counted));
    return report;
}

void GuestSession::add(GuestReport& report, Measured made) {
    if (made.result.verdict == Verdict::fail) add_kernels_reason(made.result);
    made.result.detail = printable(made.result.detail, sentence_max);
    made.result.remedy = printable(made.result.remedy, sentence_max);
    if (!made.digest.empty()) report.digests[made.result.name] = std::move(made.digest);
    if (on_test_) on_test_(made.result);
    report.tests.push_back(std::move(made.result));
}

// The kernel's reason is closer to the cause than a test's symptom.
void GuestSession::add_kernels_reason(TestResult& failed) {
    auto const logged = log_.find(names_in_log(subject_.ifname));
    if (!logged) return;
    failed.detail += fmt::format("; this machine's kernel logged: {}", logged->line);
    failed.remedy = remedy_of(logged->fault);
}

bool GuestSession::prove(GuestReport& report, SessionOffer const& offer, Deadline deadline) {
    struct Run {
        Proof proof;
        Result<Measured> (*test)(Bench&);
    };
    constexpr std::array<Run, 3> proofs{{{Proof::rc_ping, rc_ping},
                                         {Proof::rdma_write, rdma_write},
                                         {Proof::rdma_read, rdma_read}}};
    auto ready = check_offer(offer);
    if (ready) ready = rdma_->pair.connect(rdma_->endpoint, offer.host);
    if (!ready) {
        add(report, measured_failure(enum_name(proofs.front().proof), ready.error()));
        return false;
    }
    if (auto const route = rdma_->pair.route())
        report.facts["dscp"] = std::to_string(dscp_of(route->grh.traffic_class));
    std::string_view broken;  // the test after which the queue pair is unusable
    for (auto const& [proof, test] : proofs) {
        auto const name = enum_name(proof);
        if (!broken.empty()) {
            add(report, not_tried(name, broken));
            continue;
        }
        Bench bench{rdma_->endpoint, rdma_->pair, offer, subject_.attachment.nonce,
                    std::min(deadline, Steady::now() + test_time)};
        auto made = measured(name, test(bench));
        if (made.result.verdict == Verdict::fail) broken = name;
        add(report, std::move(made));
    }
    rdma_->pair.shut(Steady::now() + drain_wait);
    return broken.empty();
}

}  // namespace vfmgr::verify
