// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/interop/cm_stream.hpp"

#include <utility>

#include "api/os/random.hpp"
#include "guest-tools/interop/rping_process.hpp"
#include "guest-tools/verify/locality.hpp"

namespace vfmgr::interop {
namespace {

class CmStream final : public verify::StreamEnd {
  public:
    CmStream(std::unique_ptr<RpingProcess> server, std::uint32_t seconds)
        : server_(std::move(server)) {
        offer_.stream = random_hex(16);
        offer_.seconds = seconds;
        offer_.cm_port = server_->port();
    }
    [[nodiscard]] StreamOffer const& offer() const override { return offer_; }
    std::uint64_t stop() override { return server_->stop().pings; }

  private:
    std::unique_ptr<RpingProcess> const server_;
    StreamOffer offer_;
};

}  // namespace

verify::OpenCmStream cm_streams(std::vector<std::string> program) {
    return
        [program = std::move(program)](
            verify::SessionPermit const& permit, StreamRequest const&,
            verify::ResponderLimits const& limits) -> Result<std::unique_ptr<verify::StreamEnd>> {
            VFMGR_CHECK(verify::require_rdma(permit));
            verify::NearNic const near(permit.host_netdev);  // the child inherits it
            Terms terms;
            terms.permit = permit;
            terms.until =
                std::chrono::steady_clock::now() + std::chrono::seconds(limits.stream_seconds_max);
            terms.cm_port = 0;
            VFMGR_TRY(auto server, RpingProcess::start(program, terms));
            return std::make_unique<CmStream>(std::move(server), limits.stream_seconds_max);
        };
}

}  // namespace vfmgr::interop
