"""What ``evr1 doctor`` looks at: packages, devices, media, machine, sandbox and plugins, each as a list of findings."""
