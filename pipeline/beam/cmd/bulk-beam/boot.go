package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
)

// boot does what the boot program of Beam's containers does, if an engine started this process as a worker
// (PROCESS): it asks the engine for the addresses and options, and returns the arguments with which Beam
// becomes a worker. Of any other process it returns the arguments as they are.
func boot(args []string) ([]string, error) {
	var f struct{ id, provision, logging, control, ignored string }
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&f.id, "id", "", "")
	flags.StringVar(&f.provision, "provision_endpoint", "", "")
	flags.StringVar(&f.logging, "logging_endpoint", "", "")
	flags.StringVar(&f.control, "control_endpoint", "", "")
	flags.StringVar(&f.ignored, "artifact_endpoint", "", "") // there is nothing to fetch: this is the program
	flags.StringVar(&f.ignored, "semi_persist_dir", "", "")
	if err := flags.Parse(args[1:]); err != nil || f.provision == "" {
		return args, nil
	}
	f.id = strings.Trim(f.id, "'") // some engines quote it
	info, err := tools.ProvisionInfo(grpcx.WriteWorkerID(context.Background(), f.id), f.provision)
	if err != nil {
		return nil, fmt.Errorf("this process is a worker, but the engine at %s does not tell what to do: %w", f.provision, err)
	}
	if e := info.GetLoggingEndpoint(); e != nil {
		f.logging = e.GetUrl()
	}
	if e := info.GetControlEndpoint(); e != nil {
		f.control = e.GetUrl()
	}
	options, err := tools.ProtoToJSON(info.GetPipelineOptions())
	if err != nil {
		return nil, err
	}
	if e := info.GetStatusEndpoint(); e != nil {
		err = os.Setenv("STATUS_ENDPOINT", e.GetUrl())
	}
	if has := info.GetRunnerCapabilities(); err == nil && len(has) > 0 {
		err = os.Setenv("RUNNER_CAPABILITIES", strings.Join(has, " "))
	}
	return []string{args[0], "--worker=true", "--id=" + f.id, "--logging_endpoint=" + f.logging, "--control_endpoint=" + f.control, "--options=" + options}, err
}
