// SPDX-License-Identifier: Apache-2.0
// A verification as text for people. Pure.
#pragma once

#include <memory>
#include <string>

#include "api/types/test_lines.hpp"
#include "api/types/verification.hpp"
#include "vfmgr/proof/guest_stream.hpp"
#include "vfmgr/proof/measure.hpp"
#include "vfmgr/proof/reachability.hpp"
#include "vfmgr/rdma/device.hpp"
#include "vfmgr/rdma/faults.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::verify {

// Several lines, each with a newline: the verdict, then those of test_lines().
[[nodiscard]] std::string describe(Verification const& verification,
                                   Figures shown = Figures::important);

// How much memory can be registered in this VM: the largest MR, and the number of MRs of 4 KiB at
// once, up to 256. MPI and NCCL depend on it, and explain such failures late. One thread.

// Doubles the MR from 1 MiB on, and reads the host's message into its end over RDMA. At most half
// of the available memory (MemAvailable), and 256 MiB. Fails when one of these sizes does not work
// and the largest that does is below 64 MiB.
[[nodiscard]] Measured memory_regions(GuestStream& stream, Load const& load, Deadline deadline);

// The guest's end of one session: prepares a queue pair on the VF's RDMA device. Once the host has
// answered with an offer, runs the tests and writes the report. Owned by one thread.

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
