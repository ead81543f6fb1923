package stage

// SetAttempt names the attempts of a job.
func (j *Job) SetAttempt(name string) { j.opts.attempt = name }
