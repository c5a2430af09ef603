package com.cloudbees.groovy.cps

/** Jenkins runs what carries it without its own interpreter; here all of it is run so. */
@interface NonCPS { }
