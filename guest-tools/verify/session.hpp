// SPDX-License-Identifier: Apache-2.0
// The guest's end of one session: prepares a queue pair on the VF's RDMA device. Once the host has
// answered with an offer, runs the tests and writes the report. Owned by one thread.
#pragma once

#include <memory>

#include "guest-tools/verify/cm_ping.hpp"
#include "guest-tools/verify/device.hpp"
#include "guest-tools/verify/kernel_log.hpp"
#include "guest-tools/verify/measure.hpp"
#include "guest-tools/verify/queue_pair.hpp"

namespace vfmgr::verify {

struct Subject {
    GuestAttachment attachment;  // with a run
    std::string ifname;          // the VF's netdev
};

// The gpudirect test, run for the given time (gpu::gpudirect(), which this folder does not know).
using GpuTransfers = std::function<Measured(StreamHost const&, Endpoint const&,
                                            std::chrono::milliseconds, Deadline)>;

// The measurements that follow the proofs.
struct Measuring {
    std::vector<Measurement> expected;
    StreamHost host;
    CmPinger cm_pinger{};      // null: cm_ping is skipped
    GpuTransfers gpudirect{};  // null: gpudirect is skipped
};

class GuestSession {
  public:
    // Returns an Error when the guest can't test at all: no RDMA device, no GID, no memory.
    [[nodiscard]] static Result<std::unique_ptr<GuestSession>> prepare(Subject subject);
    // The request for the host.
    [[nodiscard]] SessionRequest const& request() const { return request_; }
    // Never fails: errors are in the report. `on_test` is called after each test.
    using OnTest = std::function<void(TestResult const&)>;
    [[nodiscard]] GuestReport run(SessionOffer const& offer, Measuring const& measuring = {},
                                  OnTest on_test = {});

  private:
    struct Rdma {
        Endpoint endpoint;
        QueuePair pair;
    };
    explicit GuestSession(Subject subject) : subject_(std::move(subject)) {}
    [[nodiscard]] Result<Rdma> open_rdma() const;
    void add(GuestReport& report, Measured made);
    void add_kernels_reason(TestResult& failed);
    void run_echo(GuestReport& report, Deadline deadline);
    [[nodiscard]] bool prove(GuestReport& report, SessionOffer const& offer, Deadline deadline);
    [[nodiscard]] Measured measure_one(Measurement const& what, Measuring const& measuring,
                                       Deadline deadline) const;
    void measure_all(GuestReport& report, Measuring const& measuring, bool proved,
                     Deadline deadline);

    Subject subject_;
    OnTest on_test_;
    SessionRequest request_;
    KernelLog log_;  // since run()
    std::optional<Rdma> rdma_;
};

}  // namespace vfmgr::verify
